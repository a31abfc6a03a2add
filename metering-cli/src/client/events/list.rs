//! `metering events`: the account's events.

use std::io::Write;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use metering_client::calls::webhooks::{EventsPage, ListEvents};
use metering_core::store::Cursor;
use metering_core::wire::EventsDocument;
use metering_core::wire::call::Bounded;

use crate::client::events::sentence;
use crate::client::session::ProfileArgs;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::{Format, notice};
use crate::table::{Column, Table};

/// Show what happened to the account, newest first: low balances, payments, keys.
///
/// Events are kept for 30 days. `metering webhooks` sends them to a server of yours. --json has their data.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  metering events
  metering events --limit 20 --json")]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// How many events to show: 1 to 100.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = RangedU64ValueParser::<u32>::new().range(1..=100)
    )]
    limit: u32,
    /// Show the events that follow; the value of `next` in the previous JSON output.
    #[arg(long, value_name = "NEXT")]
    after: Option<String>,
    #[command(flatten)]
    format: Format,
}

const COLUMNS: &[Column] = &[Column::time("TIME"), Column::word("TYPE").optional(1), Column::text("EVENT")];

impl EventsArgs {
    pub(crate) async fn run(self, out: &mut dyn Write) -> Result<(), Failure> {
        let client = self.profile.open()?.client()?;
        let page = EventsPage { limit: Bounded(self.limit), after: self.after.map(Cursor::new) };
        let response = client.call::<ListEvents>(&page, &()).await?;
        let document: Document<EventsDocument> = Document::of(response)?;
        if self.format.json {
            return document.write_json(out);
        }
        if document.content.data.is_empty() {
            return Ok(writeln!(out, "No events in the last 30 days.")?);
        }
        let mut table = Table::new(COLUMNS);
        for event in &document.content.data {
            table.row([&event.timestamp, &event.kind, &sentence::of(&event.kind, &event.data)]);
        }
        table.write(out)?;
        out.flush()?;
        if document.content.next.is_some() {
            notice(&format!("These are the newest {}; there are more.", document.content.data.len()));
        }
        Ok(())
    }
}
