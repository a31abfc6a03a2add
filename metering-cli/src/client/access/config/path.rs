use std::io::Write;

use clap::Args;

use crate::client::session::ProfileArgs;
use crate::failure::Failure;

/// Print the path of the profile's file, whether it exists or not.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:
  metering config path --profile work")]
pub(super) struct PathArgs {
    #[command(flatten)]
    profile: ProfileArgs,
}

impl PathArgs {
    pub(super) fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        Ok(writeln!(out, "{}", self.profile.profile()?.path().display())?)
    }
}
