//! `request list`: the requests of an account whose credits are held.

use std::io::Write;

use clap::Args;
use metering_admin::Bounded;
use metering_admin::calls::accounts::{HeldRequests, Newest};
use metering_core::AccountId;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::requests;

/// The most requests that are listed.
const MOST: u32 = 1_000;

/// List the requests of an account whose credits are held now, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
A hold is settled when its lease ends, at the latest; a server renews it while the request is in progress.

Examples:
  metering admin request list org_0123456789abcdefghij
  metering admin request list org_0123456789abcdefghij --json")]
pub(crate) struct ListArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let held =
            session.administrator().await?.get::<HeldRequests>(Newest { id: self.org, limit: Bounded(MOST) }).await?;
        if self.format.json {
            write_json(out, &held)?;
        } else {
            requests::write_list(out, held.requests.iter().map(|of| &of.request))?;
        }
        out.flush()?;
        if held.requests.len() >= MOST as usize {
            notice(&format!("These are the newest {MOST}; there may be more."));
        }
        Ok(())
    }
}
