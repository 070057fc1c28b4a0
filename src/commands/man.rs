//! `regard man`: the manual, generated from the same definitions as the help.

use super::{CommandResult, Output, Usage};
use clap::{Args, Command};
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard man | man -l -\n  \
    regard man bench train | man -l -\n  \
    regard man --out ~/.local/share/man/man1 && man regard-score")]
pub(crate) struct Arguments {
    /// Command whose page to print [default: the whole program]
    #[arg(conflicts_with = "out")]
    command: Vec<String>,
    /// Write a page for each command into this folder instead: regard.1, regard-score.1, …
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let mut root = crate::cli::definitions().disable_help_subcommand(true);
    root.build();
    if let Some(folder) = arguments.out {
        std::fs::create_dir_all(&folder).map_err(|e| regard::Error::io(&folder, e))?;
        return write_all(&root, &folder);
    }
    let mut command = &root;
    for name in &arguments.command {
        let found = command.get_subcommands().find(|c| c.get_name() == name);
        command = found.ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Usage(format!("{name}: no such command of {}; accepted: {known}", command.get_name()))
        })?;
    }
    let mut output = Output::new();
    output.bytes(&page(command)?)?;
    output.flush()
}

fn write_all(command: &Command, folder: &std::path::Path) -> CommandResult {
    let path = folder.join(Man::new(command.clone()).get_filename());
    std::fs::write(&path, page(command)?).map_err(|e| regard::Error::io(path, e))?;
    command.get_subcommands().filter(|c| !c.is_hide_set()).try_for_each(|c| write_all(c, folder))
}

/// A manual page. The examples keep their line breaks; the generator would join the lines.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        let text = text.to_string();
        writeln!(page, ".SH EXAMPLES\n.nf")?;
        let lines = text.lines().filter(|line| !matches!(line.trim(), "Example:" | "Examples:"));
        for line in lines {
            // A period or apostrophe at the start would be a roff request.
            writeln!(page, "\\&{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(page, ".fi")?;
    }
    Ok(page)
}
