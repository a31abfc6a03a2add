//! `metering admin log`: the log of every posting, in the store itself.
//!
//! Only a server with the key appends and signs, not these commands.

mod begin;
mod prune;
mod rotate;
mod signer;
mod status;
mod verified;
mod verify;

use std::io::Write;

use clap::Args;

use super::commands::commands;
use super::session::Session;
use crate::failure::Failure;

pub(super) use verified::VerifiedLog;

/// Begin, show, verify and prune the log of every posting, which lets customers check their bills, and rotate its key.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering admin log init /etc/metering/log.pem --public-url https://api.example.com
  metering admin log status"
)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    command: Command,
}

commands! {
    Init(begin::InitArgs),
    NewEpoch(begin::NewEpochArgs),
    Rotate(rotate::RotateArgs),
    Status(status::StatusArgs),
    Verify(verify::VerifyArgs),
    Prune(prune::PruneArgs),
}

impl LogArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        self.command.run(session, out).await
    }
}
