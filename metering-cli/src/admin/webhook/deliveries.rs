//! `webhook deliveries`: what was sent to webhooks of all accounts.

use std::io::Write;

use clap::Args;
use metering_admin::Bounded;
use metering_admin::calls::webhooks::{DeliveriesPage, ListDeliveries};
use metering_core::AccountId;
use metering_core::events::{DeliveryState, WebhookId};
use metering_core::store::Cursor;

use crate::admin::session::Session;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::table::printable;
use crate::webhooks::delivery::{self, state};

/// List deliveries to all webhooks, of the operator and of accounts, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
A delivery that fails for three days is parked: no more retries, unless you run `metering admin webhook resend`.

Examples:
  metering admin webhook deliveries --state parked
  metering admin webhook deliveries --account org_0123456789abcdefghij --limit 20 --json
  metering admin webhook deliveries --webhook we_0123456789abcdef0123456789abcdef")]
pub(crate) struct DeliveriesArgs {
    /// Only those of this account.
    #[arg(long, value_name = "ORG")]
    account: Option<AccountId>,
    /// Only those to this webhook; the operator's own has its id in `metering admin webhook list`.
    #[arg(long, value_name = "ID")]
    webhook: Option<WebhookId>,
    /// Only those in this state: pending, delivered or parked.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<DeliveryState>,
    /// How many deliveries to list: 1 to 1000.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = up_to(1000))]
    limit: u32,
    /// Show the deliveries that follow; the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    format: Format,
}

impl DeliveriesArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        let Self { account, webhook, state, limit, after, format } = self;
        let page = DeliveriesPage { account, webhook, state, after: after.map(Cursor::new), limit: Bounded(limit) };
        let deliveries = administrator.get::<ListDeliveries>(page).await?;
        if format.json {
            return write_json(out, &deliveries);
        }
        delivery::write_list_of_all(out, &deliveries.data)?;
        out.flush()?;
        if let Some(next) = &deliveries.next {
            let (count, next) = (deliveries.data.len(), printable(next));
            notice(&format!("There are more than these {count}: run it again with --after {next}"));
        }
        Ok(())
    }
}
