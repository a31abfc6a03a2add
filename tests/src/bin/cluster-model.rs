//! The model of a cluster of groups; see [`metering_tests::cluster_model`].

use std::io;
use std::process::ExitCode;

use clap::Parser;
use metering_tests::cluster_model::{self, Arguments};

fn main() -> ExitCode {
    match cluster_model::run(&Arguments::parse(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cluster-model: {error}");
            ExitCode::FAILURE
        }
    }
}
