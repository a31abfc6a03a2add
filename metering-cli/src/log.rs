//! `metering log`: audits and cosigns transparency logs (C2SP `tlog-tiles`), of any operator.

mod audit;
mod audited;
mod kept;
mod remote;
mod trust;
mod witness;

use std::io::Write;

use clap::{Args, Subcommand};

use crate::failure::Failure;

/// Audit a transparency log, or cosign its checkpoints as a witness.
///
/// Works with any log that is served as C2SP tlog-tiles. The log's verifier key must come from its operator through a
/// channel other than the log itself.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  metering log audit https://example.com/log --keep log.checkpoint --log-key \
  example.com/log+9be5d3c6+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"
)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Audit(audit::AuditArgs),
    Witness(witness::WitnessArgs),
}

impl LogArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        match self.command {
            Command::Audit(args) => args.run(out).await,
            Command::Witness(args) => args.run(out).await,
        }
    }
}
