//! `metering admin request`: requests whose credits are or were held.

use std::io::Write;

use clap::Args;
use metering_admin::Bounded;
use metering_admin::calls::accounts::{HeldRequest, HeldRequests, Newest, OfRequest};
use metering_core::AccountId;
use metering_core::charging::HoldId;

use crate::admin::session::Session;
use crate::commands::commands;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::requests;

commands! {
    /// List and show requests whose credits are held until their cost is known.
    #[command(after_help = "\
Example:
  metering admin request list org_0123456789abcdefghij")]
    RequestArgs with session {
        List(ListArgs),
        Show(ShowArgs),
    }
}

/// The maximum number of listed requests.
const MOST: u32 = 1_000;

/// List the requests of an account whose credits are held now, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
A hold is settled when its lease ends, at the latest; a server renews it while the request is in progress.

Examples:
  metering admin request list org_0123456789abcdefghij
  metering admin request list org_0123456789abcdefghij --json")]
struct ListArgs {
    /// The account's id.
    #[arg(value_name = "ORG")]
    org: AccountId,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
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

/// Show a request of any account: its held credits or its cost, and why.
#[derive(Debug, Args)]
#[command(after_help = "\
Customers find the id in the header X-BDS-Request-Id or X-Request-Id of their response. Requests that held credits can
be shown for a day after they were settled, others while they are among the account's recent activity.

Examples:
  metering admin request show req_0123456789abcdef0123456789abcdef
  metering admin request show req_0123456789abcdef0123456789abcdef --json")]
struct ShowArgs {
    /// The request's id.
    #[arg(value_name = "REQUEST")]
    id: HoldId,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let of = session.administrator().await?.get::<HeldRequest>(OfRequest { id: self.id }).await?;
        if self.format.json {
            return write_json(out, &of);
        }
        let key = format!("{} ({})", of.key_id, of.key_name);
        requests::write(out, &[("Account", &of.org_id), ("Key", &key)], &of.request)
    }
}
