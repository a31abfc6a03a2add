//! `metering events`: the account's events.

use std::io::Write;

use clap::Args;
use metering_client::calls::webhooks::{EventsPage, ListEvents};
use metering_core::store::Cursor;
use metering_core::wire::call::Bounded;

use crate::client::events::sentence;
use crate::client::session::options::CallOptions;
use crate::commands::up_to;
use crate::failure::Failure;
use crate::output::newest;
use crate::table::table;

/// Show the account's events, newest first: low balances, payments, keys.
///
/// Events are kept for 30 days. `metering webhooks` sends them to a server of yours. --json has their data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering events
  metering events --limit 20 --json")]
pub(crate) struct EventsArgs {
    /// How many events to show: 1 to 100.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = up_to(100))]
    limit: u32,
    /// Continue after this cursor: the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    options: CallOptions,
}

impl EventsArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let page = EventsPage { limit: Bounded(self.limit), after: self.after.map(Cursor::new) };
        self.options
            .call::<ListEvents>(&page, &(), out, |events, out| {
                if events.data.is_empty() {
                    return Ok(writeln!(out, "No events in the last 30 days.")?);
                }
                table!(out, &events.data, |event| {
                    time("TIME") => event.timestamp,
                    word("TYPE").optional(1) => event.kind,
                    text("EVENT") => sentence::of(&event.kind, &event.data),
                })?;
                newest(out, events.data.len(), events.next.as_ref())
            })
            .await
    }
}
