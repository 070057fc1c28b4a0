//! `regard completions`: shell completion scripts for the commands and flags.

use super::{CommandResult, Output};
use clap::Args;
use clap_complete::Shell;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    regard completions bash > ~/.local/share/bash-completion/completions/regard\n  \
    regard completions zsh > ~/.zfunc/_regard\n  \
    regard completions fish > ~/.config/fish/completions/regard.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: Arguments) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::cli::definitions(), "regard", &mut script);
    let mut output = Output::new();
    output.bytes(&script)?;
    output.flush()
}
