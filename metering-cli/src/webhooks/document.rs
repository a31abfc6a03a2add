//! Webhooks as the commands print them.

use std::io::Write;

use metering_core::wire::{WebhookDocument, WebhookStatus};

use crate::failure::Failure;
use crate::table::{table, write_pairs};

/// Writes a table of webhooks.
pub(crate) fn write_list(out: &mut dyn Write, webhooks: &[WebhookDocument]) -> Result<(), Failure> {
    table!(out, webhooks, |webhook| {
        id("ID") => webhook.id,
        state("STATE") => webhook.state.as_str(),
        text("DELIVERIES") => deliveries(webhook),
        text("EVENTS").optional(1) => events(webhook),
        time("CREATED").optional(2) => webhook.created_at,
        text("URL") => webhook.url,
    })
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
            ("Deliveries", &deliveries(webhook)),
            ("Events", &events(webhook)),
            ("Old secret", &old),
            ("Created", &webhook.created_at),
        ],
    )
}

/// The health of its deliveries, in the words of the account page.
fn deliveries(webhook: &WebhookDocument) -> String {
    let Some(health) = &webhook.health else { return "-".to_owned() };
    let since = health.failing_since.filter(|_| webhook.state == WebhookStatus::Active);
    let why = health.last_status.map(|status| format!("HTTP {status}")).or_else(|| health.last_error.clone());
    let parts = [
        since.map(|since| format!("failing since {since}")),
        why.filter(|_| since.is_some()),
        (health.waiting > 0).then(|| format!("{} waiting", health.waiting)),
        health.last_7_days.rate().map(|rate| format!("{rate} delivered in 7 days")),
    ];
    let said: Vec<_> = parts.into_iter().flatten().collect();
    if said.is_empty() { "none waiting".to_owned() } else { said.join(", ") }
}

fn events(webhook: &WebhookDocument) -> String {
    if webhook.events.is_empty() { "all".to_owned() } else { webhook.events.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deliveries_fail_only_while_the_webhook_is_active() {
        let failing = json!({"waiting": 2, "failing_since": "2026-11-28T22:51:00.000Z", "last_status": 500,
            "last_error": "status 500", "next_attempt_at": null, "last_delivered_at": null});
        let mut unreachable = failing.clone();
        unreachable["last_status"] = json!(null);
        unreachable["last_error"] = json!("connection refused");
        let none = json!({"waiting": 0, "failing_since": null, "last_status": null, "last_error": null,
            "next_attempt_at": null, "last_delivered_at": null});
        let mut rated = none.clone();
        rated["last_7_days"] = json!({"delivered": 3, "at_first_attempt": 2, "failed": 1});
        // state, health, expected text
        let table = [
            ("active", &failing, "failing since 2026-11-28T22:51:00.000Z, HTTP 500, 2 waiting"),
            ("active", &unreachable, "failing since 2026-11-28T22:51:00.000Z, connection refused, 2 waiting"),
            ("disabled", &failing, "2 waiting"),
            ("active", &none, "none waiting"),
            ("active", &rated, "75% delivered in 7 days"),
            ("active", &json!(null), "-"),
        ];
        for (state, health, said) in table {
            let webhook = json!({"id": "we_1", "url": "https://a.example/", "events": [], "state": state,
                "old_secret_expires_at": null, "created_at": "2026-11-01T00:00:00.000Z", "health": health});
            assert_eq!(deliveries(&serde_json::from_value(webhook).unwrap()), said);
        }
    }
}
