//! Writes events, each with a delivery for every webhook that receives it, in the transaction that causes them.
//!
//! One statement does all of that, so that a commit of charges can send it with its other rows. The meters of the
//! accounts must be locked, so that the events of an account are numbered in the order of their commits.

use metering_core::events::NewEvent;

use crate::connection::session::GenericClient;
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::execute;

/// Writes events and their deliveries. The condition for a webhook is
/// [`Webhook::receives`](metering_core::events::Webhook::receives). The webhooks are locked, so that none is deleted
/// until its deliveries can be deleted with it. The first event of a line is its head, if none is pending before it: in
/// the order of the index `delivery_pending`, and with a limit: an index seek, regardless of the database's statistics.
pub(crate) const INSERT: &str = "WITH written AS ( \
       INSERT INTO event (account, kind, data, created_at) SELECT new.account, new.kind, new.data, new.created_at \
       FROM unnest($1::BIGINT[], $2::TEXT[], $3::TEXT[], $4::BIGINT[]) WITH ORDINALITY \
         AS new (account, kind, data, created_at, place) ORDER BY new.place \
       RETURNING number, account, kind, created_at), \
     received AS ( \
       SELECT w.id AS webhook, e.number, e.account, e.created_at \
       FROM written e JOIN webhook w ON (w.account = e.account OR w.account IS NULL) AND w.state = 'active' \
         AND (w.kinds = '' OR e.kind = ANY (string_to_array(w.kinds, ' '))) \
       FOR KEY SHARE OF w) \
     INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
     SELECT line.webhook, line.number, line.account, 'pending', 0, line.created_at, line.created_at, \
       row_number() OVER (PARTITION BY line.webhook, line.account ORDER BY line.number) = 1 AND ( \
         SELECT p.id FROM delivery p WHERE p.state = 'pending' AND p.webhook = line.webhook AND p.account = line.account \
         ORDER BY p.webhook, p.account, p.event, p.id LIMIT 1) IS NULL \
     FROM received line ORDER BY line.number, line.webhook";

/// The value for the account of an event that has none.
pub(crate) const NO_ACCOUNT: i64 = 0;

/// The parameters of [`INSERT`].
#[derive(Default)]
pub(crate) struct EventRows {
    accounts: Vec<i64>,
    kinds: Vec<&'static str>,
    data: Vec<String>,
    created_at: Vec<i64>,
}

impl EventRows {
    pub(crate) fn new<'e>(events: impl Iterator<Item = (i64, &'e NewEvent)>) -> Self {
        let mut rows = Self::default();
        for (account, event) in events {
            rows.accounts.push(account);
            rows.kinds.push(event.data.kind().as_str());
            rows.data.push(event.json());
            rows.created_at.push(event.created_at.unix_millis());
        }
        rows
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn values(&self) -> [&dyn Value; 4] {
        [&self.accounts, &self.kinds, &self.data, &self.created_at]
    }
}

/// Writes events of an account, whose meter is locked.
pub(crate) async fn write<C: GenericClient>(client: &C, account: i64, events: &[NewEvent]) -> Result<()> {
    write_rows(client, EventRows::new(events.iter().map(|event| (account, event)))).await
}

/// Writes events of accounts whose meters are locked. Needs no statement if there are none.
pub(crate) async fn write_rows<C: GenericClient>(client: &C, rows: EventRows) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    execute(client, INSERT, &rows.values()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::INSERT;
    use crate::schema::Schema;

    /// The first event of a line is marked as its head, if nothing is pending there. That is one seek, no matter how
    /// many deliveries wait, also with the generic plan of prepared statements.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_insert_marks_heads_with_a_seek_for_each_line() {
        let Some(schema) = Schema::new().await else { return };
        let run = |sql: &str| schema.run(sql);
        // 30,000 pending deliveries: one of each account, and for account 7 all of another webhook's.
        run("INSERT INTO account (id, org_id, agent_name, created_at) \
               SELECT n, 'org_' || n, 'agent', 0 FROM generate_series(7, 9) n; \
             INSERT INTO webhook (id, public_id, account, url, kinds, state, created_at) \
               SELECT n, decode(repeat('0' || n, 16), 'hex'), CASE WHEN n > 0 THEN 7 + n % 2 END, \
                 'https://hooks.example.com/', '', CASE n WHEN 4 THEN 'disabled' ELSE 'active' END, 0 \
               FROM generate_series(0, 4) n; \
             INSERT INTO event SELECT n, n, 'key.created', '{}', 0 FROM generate_series(1, 15000) n; \
             SELECT setval('event_number', 20000); \
             INSERT INTO delivery (webhook, event, account, state, attempts, since, next_at, is_head) \
               SELECT h * 2, n, CASE h WHEN 0 THEN n ELSE 7 END, 'pending', 0, 0, 0, h = 0 OR n = 1 \
               FROM generate_series(1, 15000) n, generate_series(0, 1) h WHERE h = 1 OR n <> 7; \
             ANALYZE delivery, event, webhook");
        let execute = "EXECUTE written ('{7,8,7,7,20000}', '{key.created,key.created,key.leaked,key.created,key.created}', \
             '{a,b,c,d,e}', '{1,2,3,4,5}')";
        let prepared = format!("SET plan_cache_mode = force_generic_plan; PREPARE written AS {INSERT}");
        let plan = run(&format!("{prepared}; EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {execute}"));
        let scans: Vec<&str> = plan.lines().filter(|line| line.contains(" on delivery p")).collect();
        let is_seek = |scan: &&str| scan.contains("using delivery_pending") && scan.ends_with("loops=6)");
        assert!(scans.len() == 1 && scans.iter().all(is_seek), "{plan}");
        let heads = "SELECT string_agg(format('%s/%s/%s', webhook, d.account, e.data), ' ' ORDER BY webhook, d.account) \
             FROM delivery d JOIN event e ON e.number = d.event WHERE d.is_head AND e.number > 20000";
        // The operator has a pending delivery of account 8, but none of 7 and 20000; account 7 has some on the way to
        // its own webhook, 2, and account 8 none to its webhooks 1 and 3.
        assert_eq!(run(heads), "0/7/a 0/20000/e 1/8/b 3/8/b");
        assert_eq!(run("SELECT count(*) FROM delivery d WHERE event > 20000"), "10");
    }
}
