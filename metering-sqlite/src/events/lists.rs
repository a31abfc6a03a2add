//! Which deliveries to list: of one webhook, of an account, in a state, or all.

use metering_core::AccountId;
use metering_core::backend::one_more_than;
use metering_core::events::DeliveryFilter;
use metering_core::store::Cursor;
use metering_sql::{Value, now, values};

use crate::error::Result;

/// The condition for a page of deliveries, newest first, and its parameters.
pub(crate) fn deliveries(
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<(String, Vec<Value>)> {
    let before = now(std::future::ready(metering_sql::events::before(after)))?;
    // A `+` keeps SQLite from using an index: each list has the one that gives its order.
    let (mut condition, mut values) = ("delivery.id < ?1".to_owned(), values![before, one_more_than(limit)]);
    if let Some(webhook) = filter.webhook {
        values.extend(values![webhook]);
        condition.push_str(" AND delivery.webhook = (SELECT w.id FROM webhook w WHERE w.public_id = ?3)");
    }
    if let Some(account) = account {
        values.extend(values![account]);
        let (plus, number) = (if filter.webhook.is_some() { "+" } else { "" }, values.len());
        // The operator's webhook has deliveries of the account's events too.
        condition.push_str(&format!(
            " AND {plus}delivery.account = (SELECT a.id FROM account a WHERE a.org_id = ?{number}) AND +delivery.webhook <> 0"
        ));
    }
    if let Some(state) = filter.state {
        let plus = if filter.webhook.is_some() || account.is_some() { "+" } else { "" };
        condition.push_str(&format!(" AND {plus}delivery.state = '{}'", state.as_str()));
    }
    if let Some(kind) = filter.kind {
        values.extend(values![kind]);
        condition.push_str(&format!(" AND event.kind = ?{}", values.len()));
    }
    condition.push_str(" ORDER BY delivery.id DESC LIMIT ?2");
    Ok((condition, values))
}

/// The queries whose plans are tested, with a step of each plan.
#[cfg(test)]
pub(super) fn queries() -> Vec<(String, &'static str)> {
    use metering_core::events::{DeliveryState, WebhookId};

    let (hook, parked) = (Some(WebhookId::OPERATOR), Some(DeliveryState::Parked));
    let id = &"org_00000000000000000000".parse::<AccountId>().unwrap();
    let (of_webhook, of_account) = (
        "SEARCH delivery USING INDEX delivery_webhook (webhook=? AND id<?)",
        "SEARCH delivery USING INDEX delivery_account (account=? AND id<?)",
    );
    [
        (None, hook, None, of_webhook),
        (None, hook, parked, of_webhook),
        (Some(id), hook, parked, of_webhook),
        (Some(id), None, None, of_account),
        (Some(id), None, parked, of_account),
        (None, None, parked, "SEARCH delivery USING INDEX delivery_state (state=? AND id<?)"),
        (None, None, None, "SEARCH delivery USING INTEGER PRIMARY KEY (rowid<?)"),
    ]
    .map(|(account, webhook, state, step)| {
        let (condition, _) = deliveries(account, DeliveryFilter { webhook, state, kind: None }, None, 10).unwrap();
        (metering_sql::deliveries::select(&condition), step)
    })
    .into()
}
