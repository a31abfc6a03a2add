//! `metering admin doctor`: looks for present and coming problems, and says what to do.
//!
//! Nothing is changed. A check that could not be made is a finding too.

mod certificate;
mod chains;
mod configuration;
mod disk;
mod findings;
mod gas;
mod imported;
mod observed;
mod permissions;
mod proxies;
mod public_url;
mod store;

use std::io::Write;

use clap::Args;

use crate::database::DatabaseArgs;
use crate::failure::Failure;
use crate::output::Format;
use findings::Findings;

/// Check configuration, files, disk, clock, store, chains, certificate and proxies, and say what to do.
#[derive(Debug, Args)]
#[command(after_help = "\
Name the same configuration as for the server, and run it as the user that the server runs as. Exit code 1 if anything
is broken; warnings alone end with 0.

Examples:
  metering admin doctor --config /etc/metering/metering.toml
  metering admin doctor --data /var/lib/metering --offline --json")]
pub(crate) struct DoctorArgs {
    /// Skip the checks of the chains, the public URL and the running server.
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    format: Format,
}

impl DoctorArgs {
    pub(crate) async fn run(self, database: &DatabaseArgs, out: &mut dyn Write) -> Result<(), Failure> {
        let mut findings = Findings::default();
        if let Some(loaded) = configuration::check(database, &mut findings)? {
            let config = &loaded.config;
            permissions::check(database.config_file(), &loaded, &mut findings);
            certificate::check(config, &mut findings);
            proxies::check(config, &mut findings);
            if !config.is_mcp_alone() {
                store::check(config, &mut findings).await;
            }
            if !self.offline {
                chains::check(config, &mut findings).await;
                gas::check(config, &mut findings).await;
                public_url::check(config, &mut findings).await;
                observed::check(config, &mut findings).await;
            }
        }
        findings.write(out, self.format.json)?;
        out.flush()?;
        findings.outcome()
    }
}
