//! `request show`: one request of any account.

use std::io::Write;

use clap::Args;
use metering_admin::calls::accounts::{HeldRequest, OfRequest};
use metering_core::charging::HoldId;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::requests;

/// Show a request of any account: what it holds or cost, and why.
#[derive(Debug, Args)]
#[command(after_help = "\
Customers find the id in the header X-BDS-Request-Id or X-Request-Id of their response. Requests that held credits can
be shown for a day after they were settled, others while they are among the account's recent activity.

Examples:
  metering admin request show req_0123456789abcdef0123456789abcdef
  metering admin request show req_0123456789abcdef0123456789abcdef --json")]
pub(crate) struct ShowArgs {
    /// The request's id.
    #[arg(value_name = "REQUEST")]
    id: HoldId,
    #[command(flatten)]
    format: Format,
}

impl ShowArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let of = session.administrator().await?.get::<HeldRequest>(OfRequest { id: self.id }).await?;
        if self.format.json {
            return write_json(out, &of);
        }
        let key = format!("{} ({})", of.key_id, of.key_name);
        requests::write(out, &[("Account", &of.org_id), ("Key", &key)], &of.request)
    }
}
