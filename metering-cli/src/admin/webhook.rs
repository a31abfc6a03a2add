//! `metering admin webhook`: the webhooks of the operator and of accounts, and their deliveries.

use std::io::Write;

use clap::Args;
use metering_admin::Bounded;
use metering_admin::calls::webhooks::{
    DeliveriesPage, ListDeliveries, ListWebhooks, OfDelivery, RemoveWebhook, ResendDelivery, TestWebhook, WebhooksOf,
};
use metering_core::AccountId;
use metering_core::events::{DeliveryId, DeliveryState, WebhookId};
use metering_core::store::Cursor;

use crate::admin::session::Session;
use crate::commands::{commands, up_to};
use crate::confirm::Confirmation;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};
use crate::table::printable;
use crate::webhooks::delivery::{self, number, state};
use crate::webhooks::document;

commands! {
    /// List webhooks and their deliveries, and send parked deliveries again.
    #[command(after_help = "\
Examples:
  metering admin webhook deliveries --state parked
  metering admin webhook resend 42")]
    WebhookArgs with session {
        List(ListArgs),
        Deliveries(DeliveriesArgs),
        Resend(ResendArgs),
        Test(TestArgs),
        Remove(RemoveArgs),
    }
}

/// Send a delivery of any account again, regardless of its state.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server sends it. The event keeps its id, so a receiver that has handled it can skip it.

Example:
  metering admin webhook resend 42")]
struct ResendArgs {
    /// The number of the delivery.
    #[arg(value_name = "DELIVERY", value_parser = number)]
    delivery: DeliveryId,
    #[command(flatten)]
    format: Format,
}

impl ResendArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let of = OfDelivery { id: self.delivery };
        let resent = session.administrator().await?.act::<ResendDelivery>(of).await?.data;
        if self.format.json { write_json(out, &resent) } else { delivery::write(out, delivery::RESENT, &resent) }
    }
}

/// Send a test event to the operator's own webhook, which is in the server's configuration.
#[derive(Debug, Args)]
#[command(after_help = "\
A running server sends it. `metering admin webhook deliveries` shows the result.

Example:
  metering admin webhook test")]
struct TestArgs {
    #[command(flatten)]
    format: Format,
}

impl TestArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let sent = session.administrator().await?.act::<TestWebhook>(()).await?.data;
        if self.format.json { write_json(out, &sent) } else { delivery::write(out, "Queued the test event.", &sent) }
    }
}

/// Remove the operator's own webhook with its deliveries.
#[derive(Debug, Args)]
#[command(after_help = "\
First remove `webhooks.url` from the configuration of every server: a server that has it stores the webhook again when
it starts.

Example:
  metering admin webhook remove")]
struct RemoveArgs {
    #[command(flatten)]
    confirmation: Confirmation,
}

impl RemoveArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let administrator = session.administrator().await?;
        self.confirmation.ask("Remove the operator's webhook with its deliveries?").await?;
        administrator.act::<RemoveWebhook>(()).await?;
        Ok(writeln!(out, "The operator's webhook was removed.")?)
    }
}

/// List the operator's own webhook, which is in the server's configuration, or those of an account.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering admin webhook list
  metering admin webhook list --account org_0123456789abcdefghij --json")]
struct ListArgs {
    /// The account's id; without it, the operator's own webhook.
    #[arg(long, value_name = "ORG")]
    account: Option<AccountId>,
    #[command(flatten)]
    format: Format,
}

impl ListArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let webhooks = session.administrator().await?.get::<ListWebhooks>(WebhooksOf { account: self.account }).await?;
        if self.format.json { write_json(out, &webhooks) } else { document::write_list(out, &webhooks.data) }
    }
}

/// List deliveries to all webhooks, of the operator and of accounts, newest first.
#[derive(Debug, Args)]
#[command(after_help = "\
A delivery that fails for three days is parked: no more retries, unless you run `metering admin webhook resend`.

Examples:
  metering admin webhook deliveries --state parked
  metering admin webhook deliveries --account org_0123456789abcdefghij --limit 20 --json
  metering admin webhook deliveries --webhook we_0123456789abcdef0123456789abcdef")]
struct DeliveriesArgs {
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
    /// Continue after this cursor: the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    format: Format,
}

impl DeliveriesArgs {
    async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
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
