//! The benchmark; see [`metering_tests::bench`].

use std::io;
use std::process::ExitCode;

use clap::Parser;
use metering_tests::bench::{self, Arguments};

fn main() -> ExitCode {
    match bench::run(&Arguments::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
