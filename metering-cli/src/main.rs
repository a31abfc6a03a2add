//! `metering`: the client of a metering service, and the administration of its store.
//!
//! `metering admin` works on the store itself, with or without a running server; all other commands send requests to a
//! service over HTTP. Every command returns a [`failure::Failure`] or nothing; this file turns that into one line on
//! stderr and an exit code.

mod admin;
mod cli;
mod client;
mod completions;
mod confirm;
mod database;
mod failure;
mod keys;
mod manual;
mod new_file;
mod output;
mod requests;
mod table;
mod webhooks;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::Cli;
use crate::client::session::follow_up;
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Not locked: `mcp` writes to standard output from another thread.
    let mut out = BufWriter::new(io::stdout());
    let result = run(cli, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe because it has read enough, as `| head` does. Not a failure.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // If stderr is closed too, there is nowhere left to report.
            let _ = writeln!(io::stderr(), "error: {}", follow_up::addressed(&failure.one_line()));
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: Cli, out: &mut dyn Write) -> Result<(), Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Failed(format!("cannot start the asynchronous runtime: {error}")))?
        .block_on(cli.command.run(out))
}
