//! `regard keys`: the API keys of a server.

use super::numbers::{whole, whole_u32};
use super::{CommandResult, Output};
use clap::{Args, Subcommand};
use regard_serve::{KeyFile, KeyLimits};
use std::io::Read;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard keys add office --file keys.txt --requests-per-minute 60\n  \
    regard keys list --file keys.txt\n  \
    regard keys revoke office --file keys.txt\n  \
    regard serve --model en-de --host 0.0.0.0 --api-keys keys.txt\n\n\
    The file has the SHA-256 of each key, its name and its limits, and only its owner can read it. A key is shown once, when it\n\
    is added. A server that runs with --api-keys notices a changed file within a second; it need not be started again.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add a key and print it
    #[command(after_help = "Examples:\n  \
        regard keys add office --file keys.txt\n  \
        regard keys add office --file keys.txt --requests-per-minute 60 --char-limit 5000\n  \
        regard keys add partner --file keys.txt --from-stdin < key")]
    Add(AddFlags),
    /// List the names and limits of all keys
    #[command(after_help = "Examples:\n  regard keys list --file keys.txt")]
    List(FileFlag),
    /// Remove keys by their names
    #[command(after_help = "Examples:\n  regard keys revoke office --file keys.txt")]
    Revoke(RevokeFlags),
}

#[derive(Debug, Args)]
struct FileFlag {
    /// The file of keys, as in `regard serve --api-keys FILE`
    #[arg(long, short, value_name = "FILE", env = "REGARD_API_KEYS")]
    file: PathBuf,
}

#[derive(Debug, Args)]
struct AddFlags {
    /// Name of the key: letters, digits, dots, hyphens, @ and _
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    file: FileFlag,
    /// Requests per minute with this key [default: as for all keys]
    #[arg(long, value_name = "N", value_parser = whole_u32(1..=1_000_000))]
    requests_per_minute: Option<u32>,
    /// Maximum characters per request with this key [default: as for all keys]
    #[arg(long, value_name = "N", value_parser = whole(1..=100_000_000))]
    char_limit: Option<usize>,
    /// Read the key from standard input instead of making one; at least 16 characters
    #[arg(long)]
    from_stdin: bool,
}

#[derive(Debug, Args)]
struct RevokeFlags {
    /// Names of keys
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    file: FileFlag,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    match arguments.action {
        Action::Add(flags) => add(&flags),
        Action::List(FileFlag { file }) => {
            let keys = KeyFile::read(&file)?.list();
            let mut out = Output::new();
            let shown = |limit: Option<String>| limit.unwrap_or_else(|| "-".to_owned());
            out.line("name\tcreated\trequests per minute\tcharacters per request")?;
            for key in keys {
                let name = key.name.unwrap_or_else(|| "(in plain text)".to_owned());
                let requests = shown(key.limits.requests_per_minute.map(|n| n.to_string()));
                let characters = shown(key.limits.characters.map(|n| n.to_string()));
                out.line(format!("{name}\t{}\t{requests}\t{characters}", shown(key.created)))?;
            }
            out.flush()
        }
        Action::Revoke(RevokeFlags { names, file: FileFlag { file } }) => {
            KeyFile::revoke(&file, &names)?;
            for name in names {
                note!("regard: {name} is revoked");
            }
            Ok(())
        }
    }
}

fn add(flags: &AddFlags) -> CommandResult {
    let mut given = String::new();
    if flags.from_stdin {
        std::io::stdin().read_to_string(&mut given)?;
    }
    let limits = KeyLimits { requests_per_minute: flags.requests_per_minute, characters: flags.char_limit };
    let key = flags.from_stdin.then_some(given.as_str());
    let key = KeyFile::add(&flags.file.file, &flags.name, limits, key)?;
    if !flags.from_stdin {
        let mut out = Output::new();
        out.line(&key)?;
        out.flush()?;
        note!("regard: this is the only time that the key of {} is shown", flags.name);
    }
    Ok(())
}
