//! Translates the lines of standard input.
//!
//!     cargo run --release --example translate -- MODEL < input.en

use regard::{Isa, Translator};
use std::io::{BufRead, stdin};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = std::env::args().nth(1).ok_or("usage: translate MODEL < input")?;
    let translator = Translator::load(&[model], Isa::best(), 2)?;
    let options = translator.options();
    let lines = stdin().lock().lines().collect::<Result<Vec<_>, _>>()?;
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for line in translator.translate(&lines, &options)? {
        println!("{}", line.best().text);
    }
    Ok(())
}
