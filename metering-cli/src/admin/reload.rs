//! `metering admin reload`: makes a server reload its configuration.

use std::io::Write;

use clap::Args;
use metering_admin::wire::ReloadDocument;

use super::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::write_pairs;

/// Make a running server reload its configuration, without closing a connection. Needs --server and --reason.
#[derive(Debug, Args)]
#[command(after_help = "\
The server takes a new catalogue, limits, brand, operator, terms and certificate. If anything in the new configuration is
wrong, nothing changes. Keys that only a restart takes are listed. SIGHUP does the same; the server's log then has the
outcome.

Examples:
  metering admin reload --server http://127.0.0.1:9090 --reason \"Ticket 311: new prices\"
  metering admin reload --server http://127.0.0.1:9090 --reason \"Ticket 311: new prices\" --json")]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    format: Format,
}

impl ReloadArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let reloaded = session.administrator().await?.reload().await?;
        if self.format.json {
            return write_json(out, &reloaded);
        }
        let ReloadDocument { changed, needs_restart } = &reloaded;
        let changed = if changed.is_empty() { "nothing".to_owned() } else { changed.join(", ") };
        if needs_restart.is_empty() {
            return write_pairs(out, &[("Changed", &changed)]);
        }
        write_pairs(out, &[("Changed", &changed), ("Needs a restart", &needs_restart.join(", "))])
    }
}
