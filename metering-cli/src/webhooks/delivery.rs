//! Deliveries as the commands print and read them.

use std::io::Write;

use metering_core::events::{DeliveryId, DeliveryState};
use metering_core::wire::DeliveryDocument;

use crate::failure::Failure;
use crate::table::{Column, Table, write_pairs};

/// The headline of a delivery that was resent.
pub(crate) const RESENT: &str = "Queued for delivery.";

const COLUMNS: &[Column] = &[
    Column::number("DELIVERY"),
    Column::word("EVENT"),
    Column::time("HAPPENED"),
    Column::state("STATE"),
    Column::number("ATTEMPTS").optional(1),
    Column::time("NEXT").optional(3),
    Column::time("LAST").optional(4),
    Column::text("RESULT").optional(2),
];

const COLUMNS_OF_ALL: &[Column] = &[
    Column::number("DELIVERY"),
    Column::word("EVENT"),
    Column::time("HAPPENED"),
    Column::state("STATE"),
    Column::number("ATTEMPTS").optional(1),
    Column::time("LAST").optional(4),
    Column::id("WEBHOOK").optional(5),
    Column::text("RESULT").optional(2),
];

const ABSENT: &str = "-";

/// Writes a table of deliveries.
pub(crate) fn write_list(out: &mut dyn Write, deliveries: &[DeliveryDocument]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS);
    for delivery in deliveries {
        table.row([
            &delivery.id,
            &delivery.event.kind,
            &delivery.event.timestamp,
            &delivery.state.as_str(),
            &delivery.attempts,
            &time(delivery.next_attempt_at),
            &time(delivery.last_attempt_at),
            &result(delivery),
        ]);
    }
    table.write(out)
}

/// Writes a table of deliveries to several webhooks.
pub(crate) fn write_list_of_all(out: &mut dyn Write, deliveries: &[DeliveryDocument]) -> Result<(), Failure> {
    let mut table = Table::new(COLUMNS_OF_ALL);
    for delivery in deliveries {
        table.row([
            &delivery.id,
            &delivery.event.kind,
            &delivery.event.timestamp,
            &delivery.state.as_str(),
            &delivery.attempts,
            &time(delivery.last_attempt_at),
            &delivery.webhook_id,
            &result(delivery),
        ]);
    }
    table.write(out)
}

/// Writes a delivery below `headline`.
pub(crate) fn write(out: &mut dyn Write, headline: &str, delivery: &DeliveryDocument) -> Result<(), Failure> {
    writeln!(out, "{headline}\n")?;
    write_pairs(
        out,
        &[
            ("Delivery", &delivery.id),
            ("Webhook", &delivery.webhook_id),
            ("Event", &format!("{} ({})", delivery.event.kind, delivery.event.id)),
            ("Happened", &delivery.event.timestamp),
            ("State", &delivery.state.as_str()),
            ("Attempts", &delivery.attempts),
            ("Next attempt", &time(delivery.next_attempt_at)),
            ("Last attempt", &time(delivery.last_attempt_at)),
            ("Last result", &result(delivery)),
        ],
    )
}

/// Reads a state.
pub(crate) fn state(text: &str) -> Result<DeliveryState, &'static str> {
    DeliveryState::from_name(text).ok_or("must be pending, delivered or parked")
}

/// Reads the number of a delivery.
pub(crate) fn number(text: &str) -> Result<DeliveryId, &'static str> {
    let number = text.parse().ok().filter(|number: &i64| *number >= 0);
    number.map(DeliveryId::new).ok_or("must be the number of a delivery")
}

fn time(at: Option<metering_core::Timestamp>) -> String {
    at.map_or_else(|| ABSENT.to_owned(), |at| at.to_string())
}

fn result(delivery: &DeliveryDocument) -> String {
    match (&delivery.last_error, delivery.last_status) {
        (Some(error), _) => error.clone(),
        (None, Some(status)) => format!("status {status}"),
        (None, None) => ABSENT.to_owned(),
    }
}
