//! `metering`: the client of a metering service, and the administration of its store.
//!
//! `metering admin` works on the store itself, with or without a running server; all other commands send requests to a
//! service over HTTP. Every command returns a [`failure::Failure`] or nothing; this file turns that into one line on
//! stderr and an exit code.

mod admin;
mod cli;
mod client;
mod commands;
mod completions;
mod confirm;
mod database;
mod failure;
mod json;
mod keys;
mod log;
mod manual;
mod new_file;
mod output;
mod progress;
mod requests;
mod screen;
mod table;
mod webhooks;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::builder::styling::Styles;

use crate::cli::Cli;
use crate::client::session::follow_up;
use crate::failure::Failure;
use crate::screen::Screen;

fn main() -> ExitCode {
    let cli = Cli::parse();
    Screen::init(cli.wide);
    cli.tables.clone().init();
    // Not locked: `mcp` writes to standard output from another thread.
    let mut out = BufWriter::new(io::stdout());
    let result = run(cli, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe because it has read enough, as `| head` does. Not a failure.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // If stderr is closed too, there is nowhere left to report.
            let _ = print_error(&mut anstream::stderr(), &follow_up::addressed(&failure.one_line()));
            ExitCode::from(failure.exit_code())
        }
    }
}

/// In the colours of clap's own errors. The stream omits colours where they are unsupported or unwanted.
fn print_error(screen: &mut impl Write, message: &str) -> io::Result<()> {
    let styles = Styles::styled();
    let style = styles.get_error();
    writeln!(screen, "{style}error:{style:#} {message}")
}

fn run(cli: Cli, out: &mut dyn Write) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start the asynchronous runtime: {error}")))?
        .block_on(cli.command.run(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_error_is_coloured_and_only_where_colours_are_shown() {
        let printed = |mut stream: anstream::AutoStream<Vec<u8>>| {
            print_error(&mut stream, "no plan").unwrap();
            String::from_utf8(stream.into_inner()).unwrap()
        };
        assert_eq!(printed(anstream::AutoStream::never(Vec::new())), "error: no plan\n");
        let coloured = printed(anstream::AutoStream::always_ansi(Vec::new()));
        assert!(coloured.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m no plan"), "{coloured:?}");
    }
}
