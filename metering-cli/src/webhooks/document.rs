//! Webhooks as the commands print them.

use std::io::Write;

use metering_core::wire::WebhookDocument;

use crate::failure::Failure;
use crate::table::{Column, Table, write_pairs};

const COLUMNS: &[Column] = &[
    Column::id("ID"),
    Column::word("STATE"),
    Column::text("EVENTS").optional(1),
    Column::time("CREATED").optional(2),
    Column::text("URL"),
];

/// Writes a table of webhooks.
pub(crate) fn write_list(out: &mut dyn Write, webhooks: &[WebhookDocument]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for webhook in webhooks {
        table.row([&webhook.id, &webhook.state.as_str(), &events(webhook), &webhook.created_at, &webhook.url]);
    }
    table.write(out)
}

/// Writes a webhook below `headline`, if there is one.
pub(crate) fn write(out: &mut dyn Write, headline: &str, webhook: &WebhookDocument) -> Result<(), Failure> {
    if !headline.is_empty() {
        writeln!(out, "{headline}\n")?;
    }
    let old = webhook.old_secret_expires_at.map_or_else(|| "not used".to_owned(), |at| format!("used until {at}"));
    write_pairs(
        out,
        &[
            ("Webhook", &webhook.id),
            ("URL", &webhook.url),
            ("State", &webhook.state.as_str()),
            ("Events", &events(webhook)),
            ("Old secret", &old),
            ("Created", &webhook.created_at),
        ],
    )
}

fn events(webhook: &WebhookDocument) -> String {
    if webhook.events.is_empty() { "all".to_owned() } else { webhook.events.join(", ") }
}
