//! Deliveries as the commands print and read them.

use std::io::Write;

use metering_core::events::{DeliveryId, DeliveryState};
use metering_core::wire::DeliveryDocument;

use crate::failure::Failure;
use crate::table::{table, write_pairs};

/// The headline of a delivery that was resent.
pub(crate) const RESENT: &str = "Queued for delivery.";

const ABSENT: &str = "-";

/// Writes a table of deliveries.
pub(crate) fn write_list(out: &mut dyn Write, deliveries: &[DeliveryDocument]) -> Result<(), Failure> {
    table!(out, deliveries, |delivery| {
        number("DELIVERY") => delivery.id,
        word("EVENT") => delivery.event.kind,
        time("HAPPENED") => delivery.event.timestamp,
        state("STATE") => delivery.state.as_str(),
        number("ATTEMPTS").optional(1) => delivery.attempts,
        time("NEXT").optional(3) => time(delivery.next_attempt_at),
        time("LAST").optional(4) => time(delivery.last_attempt_at),
        text("RESULT").optional(2) => result(delivery),
    })
}

/// Writes a table of deliveries to several webhooks.
pub(crate) fn write_list_of_all(out: &mut dyn Write, deliveries: &[DeliveryDocument]) -> Result<(), Failure> {
    table!(out, deliveries, |delivery| {
        number("DELIVERY") => delivery.id,
        word("EVENT") => delivery.event.kind,
        time("HAPPENED") => delivery.event.timestamp,
        state("STATE") => delivery.state.as_str(),
        number("ATTEMPTS").optional(1) => delivery.attempts,
        time("LAST").optional(4) => time(delivery.last_attempt_at),
        id("WEBHOOK").optional(5) => delivery.webhook_id,
        text("RESULT").optional(2) => result(delivery),
    })
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
