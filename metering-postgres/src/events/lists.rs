//! Which deliveries to list: of one webhook, of an account, in a state, or all.

use metering_core::AccountId;
use metering_core::backend::one_more_than;
use metering_core::events::{DeliveryFilter, DeliveryState};
use metering_core::store::Cursor;
use metering_sql::{Value, values};

use crate::error::Result;

/// The condition for a page of deliveries, newest first, and its parameters.
pub(crate) fn deliveries(
    account: Option<&AccountId>,
    filter: DeliveryFilter,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<(String, Vec<Value>)> {
    let states = DeliveryState::ALL.into_iter().filter(|state| filter.state.is_none_or(|only| only == *state));
    let states = states.map(DeliveryState::as_str).collect::<Vec<_>>().join(",");
    let mut values = values![metering_sql::events::before(after)?, states, one_more_than(limit)];
    values.extend(account.iter().flat_map(|account| values![account]));
    values.extend(filter.webhook.iter().flat_map(|webhook| values![webhook]));
    values.extend(filter.kind.iter().flat_map(|kind| values![*kind]));
    Ok((listed(account.is_some(), filter.webhook.is_some(), filter.kind.is_some()), values))
}

/// The condition for deliveries below `$1` in the states `$2`, at most `$3`: those of an account, those to a webhook,
/// both (`$4` and `$5`), or all; if `of_kind`, those of events of the kind that is the last parameter. Each has only
/// the conditions that apply, and so its own plan, which does not depend on the values: a seek in an index per webhook
/// and state, each for at most as many rows as the page has.
fn listed(of_account: bool, to_webhook: bool, of_kind: bool) -> String {
    let number = 4 + usize::from(of_account) + usize::from(to_webhook);
    let kind = if of_kind {
        format!("(SELECT e.kind FROM event e WHERE e.number = p.event) = ${number} AND ")
    } else {
        String::new()
    };
    let hooks = match (of_account, to_webhook) {
        (false, false) => "",
        (true, false) => "JOIN webhook h ON h.account = (SELECT id FROM account WHERE org_id = $4)",
        (false, true) => "JOIN webhook h ON h.public_id = $4",
        (true, true) => "JOIN webhook h ON h.account = (SELECT id FROM account WHERE org_id = $4) AND h.public_id = $5",
    };
    // Each order is that of one index only: `delivery_state` or `delivery_webhook`. With the primary key's order, the
    // database might look for the page among all deliveries.
    let page = if hooks.is_empty() {
        "p.state >= s.state AND (p.state, p.id) < (s.state, $1) ORDER BY p.state DESC, p.id DESC"
    } else {
        "p.webhook = h.id AND p.state = s.state AND p.id < $1 ORDER BY p.id DESC NULLS LAST"
    };
    format!(
        "delivery.id = ANY (ARRAY ( \
           SELECT page.id FROM unnest(string_to_array($2, ',')) AS s (state) {hooks} CROSS JOIN LATERAL ( \
             SELECT p.id FROM delivery p WHERE {kind}{page} LIMIT $3) page \
           ORDER BY page.id DESC LIMIT $3)) ORDER BY delivery.id DESC"
    )
}

#[cfg(test)]
mod tests {
    use super::listed;
    use crate::schema::Schema;

    #[tokio::test(flavor = "multi_thread")]
    async fn lists_read_no_more_than_a_page_of_each_webhook_and_state() {
        let Some(schema) = Schema::new().await else { return };
        // Of 30,000 deliveries to 3 webhooks, account 7 has the 3 oldest ones. One in 5,000 is parked.
        schema.run(
            "INSERT INTO account (id, org_id, agent_name, created_at) \
               SELECT n, 'org_' || n, 'agent', 0 FROM generate_series(7, 8) n; \
             INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
               SELECT n, decode(repeat('0' || n, 16), 'hex'), CASE n WHEN 1 THEN 7 WHEN 2 THEN 8 END, \
                 'https://hooks.example.com/', '', 'active', 0 FROM generate_series(0, 2) n; \
             INSERT INTO event SELECT n, 8, 'key.created', '{}', 0 FROM generate_series(1, 30000) n; \
             INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at) \
               SELECT CASE WHEN n < 4 THEN 1 ELSE (n + 1) % 2 * 2 END, n, 8, \
                 CASE n % 5000 WHEN 1 THEN 'parked' ELSE 'delivered' END, 0, 0, 0 FROM generate_series(1, 30000) n; \
             ANALYZE account, webhook, event, delivery",
        );
        let hook = |n: u8| format!("'\\x{}'", format!("{n:02}").repeat(16));
        let (every, parked) = ("'pending,delivered,parked'", "'parked'");
        let (first, second) = (hook(1), hook(2));
        // of an account, to a webhook, states, the values of both, rows
        let table = [
            (false, false, every, String::new(), 5),
            (false, false, parked, String::new(), 5),
            (true, false, every, ", 'org_7'".to_owned(), 3),
            (true, false, parked, ", 'org_7'".to_owned(), 1),
            (true, false, every, ", 'org_8'".to_owned(), 5),
            (false, true, every, format!(", {second}"), 5),
            (false, true, parked, format!(", {second}"), 0),
            (true, true, every, format!(", 'org_7', {first}"), 3),
            (true, true, every, format!(", 'org_7', {second}"), 0),
        ];
        for (of_account, to_webhook, states, values, count) in table {
            let sql = metering_sql::deliveries::select(&listed(of_account, to_webhook, false));
            let values = format!("(1000000, {states}, 5{values})");
            let look = schema.look(&sql, &values);
            assert_eq!(look.rows.lines().count(), count, "{values}: {}", look.rows);
            let plan = &look.plan;
            let scans: Vec<&str> =
                plan.lines().filter(|line| line.contains(" on delivery") || line.contains(" on event")).collect();
            let is_seek = |scan: &&str| scan.contains("Index") && !scan.contains("Seq Scan");
            assert!(scans.len() >= 3 && scans.iter().all(is_seek), "{values}: {plan}");
            let filtered = plan.lines().filter_map(|line| line.split_once("Rows Removed by Filter: "));
            let filtered: u64 = filtered.map(|(_, rows)| rows.parse::<u64>().unwrap()).sum();
            assert!(filtered < 10, "{values}: {plan}");
            assert!(look.pages().unwrap() < 100, "{values}: {plan}");
        }
    }
}
