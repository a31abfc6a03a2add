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
pub mod http;
mod machine;
mod rounds;
mod summary;
mod table;

use std::error::Error;
use std::io::Write;

pub use arguments::{Arguments, Part};

/// Why a benchmark has no figures.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Runs the parts that were asked for, and writes their tables as they are finished.
///
/// # Errors
/// When a part fails, or what it did was not what it was to measure.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        machine::write(&arguments.data_dir, out)?;
        disk::write(arguments, out)?;
        for part in arguments.parts() {
            match part {
                Part::Charges => charges::write(arguments, out).await?,
                Part::Summary => summary::write(arguments, out).await?,
            }
        }
        Ok(())
    })
}
