//! Runs the chaos campaigns; see [`metering_tests::chaos`].

use std::io;
use std::process::ExitCode;

use clap::Parser;
use metering_tests::chaos::{self, Arguments};

fn main() -> ExitCode {
    match chaos::run(&Arguments::parse(), &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("chaos: {error}");
            ExitCode::from(2)
        }
    }
}
