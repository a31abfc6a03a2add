//! Writes the server's manual page, and its completion scripts for bash, zsh and fish, into a folder. For packages.
//!
//!     cargo run -p metering-server --example manual -- target/debian/server

use std::path::PathBuf;

use clap::{CommandFactory, Parser};
use clap_complete::Shell;
use metering_server::config::Arguments;

#[derive(Debug, Parser)]
struct Options {
    /// The folder. It is created if it does not exist.
    folder: PathBuf,
}

fn main() -> std::io::Result<()> {
    let Options { folder } = Options::parse();
    std::fs::create_dir_all(&folder)?;
    clap_mangen::Man::new(Arguments::command()).section("8").generate_to(&folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Arguments::command(), "metering-server", &folder)?;
    }
    Ok(())
}
