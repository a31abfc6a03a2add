//! The benchmark: what a charge costs, measured so that anybody can measure it again.
//!
//! It prints Markdown: what machine it ran on, what its disk does, and a table for each part. Every figure is the median
//! of several rounds, and what is to be compared is measured in turns within a round, since a machine drifts by more
//! than what one wants to see. Work that did not succeed is an error and not a figure: a charge that is refused costs
//! less than one that is taken.

mod accounts;
mod arguments;
mod charges;
mod chooser;
mod disk;
mod draws;
mod figure;
mod http;
mod machine;
mod postgres;
mod rounds;
mod serving;
mod summary;
mod table;

use std::error::Error;
use std::io::Write;
use std::time::Instant;

pub use arguments::{Arguments, Part};

use crate::program;

/// Why a benchmark has no figures.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Runs the parts that were asked for, and writes their tables as they are finished.
///
/// # Errors
/// When a part fails, or what it did was not what it was to measure.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let begun = Instant::now();
        if arguments.parts().iter().any(|part| part.serves()) {
            // Rather now than after minutes of the parts before.
            program::find("metering-server")?;
        }
        machine::write(&arguments.data_dir, out)?;
        write_method(arguments, out)?;
        disk::write(arguments, out)?;
        for part in arguments.parts() {
            match part {
                Part::Charges => charges::write(arguments, out).await?,
                Part::Http => http::write(arguments, out).await?,
                Part::Summary => summary::write(arguments, out).await?,
                Part::Postgres => postgres::write(arguments, out).await?,
            }
        }
        eprintln!("all done in {} s", begun.elapsed().as_secs());
        Ok(())
    })
}

fn write_method(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let time = humantime::format_duration(arguments.time);
    match arguments.rounds.get() {
        1 => writeln!(out, "\nEach figure is of one round of {time}.")?,
        rounds => writeln!(out, "\nEach figure is the median of {rounds} rounds of {time}.")?,
    }
    if arguments.quick {
        writeln!(out, "\n**This is a quick run: it shows that the benchmark works, and its figures mean little.**")?;
    }
    Ok(())
}
