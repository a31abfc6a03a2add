//! `metering`: the command-line side of a metering store.
//!
//! `metering admin` works on the store itself, with or without a server beside it. Every command returns a
//! [`failure::Failure`] or nothing; this file turns that into one line on stderr and an exit code.

mod admin;
mod cli;
mod completions;
mod confirm;
mod database;
mod failure;
mod new_file;
mod output;
mod table;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = BufWriter::new(io::stdout().lock());
    let result = run(cli, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has read enough, as with `| head`; that is no failure.
        Err(Failure::Output(error)) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            // Nothing is left to tell when even stderr is closed.
            let _ = writeln!(io::stderr(), "error: {}", failure.one_line());
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(cli: Cli, out: &mut dyn Write) -> Result<(), Failure> {
    match cli.command {
        Command::Admin(admin) => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| Failure::Failed(format!("cannot start the asynchronous runtime: {error}")))?
            .block_on(admin.run(out)),
        Command::Completions(completions) => completions.run(out),
    }
}
