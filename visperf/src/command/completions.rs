//! `visperf completions`: completion scripts for shells.
//!
//! Not here: the command line they complete (`super::Cli`).

use crate::command::Cli;
use crate::exit::Failure;
use crate::output::Output;
use clap::CommandFactory as _;
use clap_complete::Shell;

/// Print a completion script for your shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  visperf completions bash > ~/.local/share/bash-completion/completions/visperf
  visperf completions zsh > ~/.zfunc/_visperf
  visperf completions fish > ~/.config/fish/completions/visperf.fish")]
pub(crate) struct Args {
    /// Shell to generate the script for
    shell: Shell,
}

/// Print the script.
///
/// # Errors
/// If the output cannot be written.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "visperf", &mut script);
    let mut output = Output::stdout();
    output.line(String::from_utf8_lossy(&script).trim_end_matches('\n'))?;
    output.flush()
}
