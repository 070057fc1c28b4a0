//! Takes a file apart and writes it again, every sentence as its own translation or in capitals:
//! what a document looks like after a translation, without a model.
//!
//!     cargo run -p regard-documents --example rewrite -- report.docx copy.docx
//!     cargo run -p regard-documents --example rewrite -- report.docx capitals.docx upper

use regard_documents::Translation;
use regard_documents::files::{FileDocument, FileOptions, Format};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = arguments.as_slice() else {
        return Err("two files are needed: the one to read and the one to write".into());
    };
    let upper = match rest {
        [] => false,
        [word] if word == "upper" => true,
        _ => return Err("only `upper` may follow the files".into()),
    };
    let bytes = std::fs::read(from)?;
    let format = Format::of_name(Path::new(from), &bytes).ok_or("the format of the file is not known")?;
    let document = FileDocument::open(format, &bytes, &FileOptions::default())?;
    let translations: Vec<Translation> = document
        .sentences()
        .map(|sentence| {
            let text = if upper { sentence.text.to_uppercase() } else { sentence.text.clone() };
            let mut translation = Translation::same(&text);
            sentence.restore(&mut translation);
            translation
        })
        .collect();
    std::fs::write(to, document.render(&translations)?)?;
    println!("{} units, {} sentences", document.units().len(), translations.len());
    Ok(())
}
