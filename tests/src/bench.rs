//! Reproducible benchmark of the cost of a charge.
//!
//! It prints Markdown: the machine, the speed of its disk, and a table for each part. Every figure is the median of
//! several rounds. Things to compare are measured in turns within a round, because a machine drifts by more than the
//! difference of interest. Failed work is an error, not a figure: a refused charge costs less than an accepted one.

mod accounts;
mod aged;
mod arguments;
mod background;
mod bare;
mod charges;
mod chooser;
mod deduct;
mod disk;
mod failure;
pub(crate) mod format;
mod gateway;
mod generator;
mod holds;
mod http;
mod interrupt;
mod llm;
mod machine;
mod nginx;
mod overlap;
mod postgres;
mod proof;
mod proxies;
pub(crate) mod random;
mod rounds;
mod sample;
mod serving;
mod startup;
mod streams;
mod summary;
pub(crate) mod table;
mod tools;
mod turns;
mod upstream;

use std::io::Write;
use std::time::Instant;

pub use arguments::{Arguments, Part};
pub use failure::Failure;

use tools::Tools;

/// Runs the selected parts, and writes each table when it is finished.
///
/// # Errors
/// If a part fails, or did something other than what it should measure.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    interrupt::watch()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let started = Instant::now();
        if arguments.parts().iter().any(|part| part.serves()) {
            // Fail now rather than after minutes of earlier parts.
            arguments.servers()?;
        }
        let tools = Tools::find();
        machine::write(&arguments.data_dir, out)?;
        tools.write(out)?;
        write_method(arguments, out)?;
        disk::write(arguments, out)?;
        for part in arguments.parts() {
            match part {
                Part::Charges => charges::write(arguments, out).await?,
                Part::Holds => holds::write(arguments, out).await?,
                Part::Aged => aged::write(arguments, out).await?,
                Part::Startup => startup::write(arguments, out).await?,
                Part::Http => http::write(arguments, &tools, out).await?,
                Part::Proof => proof::write(arguments, &tools, out).await?,
                Part::Gateway => gateway::write(arguments, &tools, out).await?,
                Part::Llm => llm::write(arguments, &tools, out).await?,
                Part::Overlap => overlap::write(arguments, &tools, out).await?,
                Part::Proxies => proxies::write(arguments, &tools, out).await?,
                Part::Deduct => deduct::write(arguments, &tools, out).await?,
                Part::Streams => streams::write(arguments, &tools, out).await?,
                Part::Summary => summary::write(arguments, out).await?,
                Part::Postgres => postgres::write(arguments, out).await?,
            }
        }
        eprintln!("done in {} s", started.elapsed().as_secs());
        Ok(())
    })
}

fn write_method(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let time = humantime::format_duration(arguments.time);
    match arguments.rounds.get() {
        1 => writeln!(out, "\nEach figure is from one round of {time}.")?,
        rounds => writeln!(out, "\nEach figure is the median of {rounds} rounds of {time}.")?,
    }
    if arguments.quick {
        writeln!(out, "\n**This is a quick run: it only shows that the benchmark works; ignore its figures.**")?;
    }
    Ok(())
}
