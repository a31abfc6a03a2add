//! Lines and their heads. A line has the deliveries of one account's events to one webhook. Its head is the first one that
//! is pending, which is the only one that may be sent.
//!
//! `delivery.is_head` marks the heads, so that those that are due are found in an index of heads only. A line of a customer's
//! webhook has a mark only while the webhook is active. The operator's lines, one per account, keep theirs while their
//! webhook is switched off: looks check its state first.
//!
//! Events are inserted under the lock of their account's meter, and become heads if nothing before them is pending. All
//! that moves a mark holds the same lock, so that neither misses what the other does.

use metering_core::Timestamp;
use tokio_postgres::Row;

use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::events::progress::{self, PROGRESS, progress};
use crate::rows::{all, execute, first};

/// The row number of the operator's webhook.
pub(crate) const OPERATOR: i64 = 0;

/// The first pending delivery of `line`, which has a webhook and an account. In the order of the index
/// `delivery_pending`, and with a limit, so that it is a seek whatever the database knows of the tables.
macro_rules! first_of_line {
    () => {
        "SELECT p.id FROM delivery p WHERE p.state = 'pending' AND p.webhook = line.webhook AND p.account = line.account \
         ORDER BY p.webhook, p.account, p.event, p.id LIMIT 1"
    };
}
pub(crate) use first_of_line;

/// The parameters of a statement for lines.
const LINES: &str = "unnest($1::BIGINT[], $2::BIGINT[]) AS line (webhook, account)";

/// Which lines have a mark.
const IS_MARKED: &str = "(w.state = 'active' OR w.id = 0)";

/// The events of one account on their way to one webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) webhook: i64,
    pub(crate) account: i64,
}

impl Line {
    /// Reads a line from two columns, which start at `first`.
    pub(crate) fn read(row: &Row, first: usize) -> Result<Self> {
        Ok(Self { webhook: row.try_get(first)?, account: row.try_get(first + 1)? })
    }
}

fn columns(lines: &[Line]) -> [Vec<i64>; 2] {
    lines.iter().map(|line| (line.webhook, line.account)).collect::<(Vec<_>, Vec<_>)>().into()
}

/// Locks the meters of the accounts of these lines, in the order in which charges lock them. Tests of the operator's
/// webhook have no account, and need no lock: all are serialized writes.
pub(crate) async fn lock<C: GenericClient>(client: &C, lines: &[Line]) -> Result<()> {
    let [_, accounts] = columns(lines);
    let sql = "SELECT account FROM meter WHERE account = ANY ($1) ORDER BY account FOR UPDATE";
    all(client, sql, &[&accounts]).await.map(drop)
}

/// The lines of which one of these events is the head. They are the same once they are locked: only serialized writes
/// remove a mark, and charges mark only what they write.
pub(crate) async fn of_events<C: GenericClient>(client: &C, events: &[i64]) -> Result<Vec<Line>> {
    let sql = "SELECT webhook, account FROM delivery WHERE event = ANY ($1) AND is_head";
    all(client, sql, &[&events]).await?.iter().map(|row| Line::read(row, 0)).collect()
}

/// Marks the heads of lines that have none, unless their webhook is switched off. The lines are locked.
pub(crate) async fn mark<C: GenericClient>(client: &C, lines: &[Line]) -> Result<()> {
    if lines.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "UPDATE delivery SET is_head = TRUE WHERE NOT is_head AND id = ANY (ARRAY ( \
           SELECT first.id FROM {LINES} JOIN webhook w ON w.id = line.webhook \
             CROSS JOIN LATERAL ({}) first WHERE {IS_MARKED}))",
        first_of_line!()
    );
    let [webhooks, accounts] = columns(lines);
    execute(client, &sql, &[&webhooks, &accounts]).await.map(drop)
}

/// Removes the mark of a line, before its head or the state of its webhook changes. The line is locked.
pub(crate) async fn unmark<C: GenericClient>(client: &C, line: Line) -> Result<()> {
    let sql = format!(
        "UPDATE delivery SET is_head = FALSE WHERE is_head AND id = ANY (ARRAY ( \
           SELECT first.id FROM {LINES} CROSS JOIN LATERAL ({}) first))",
        first_of_line!()
    );
    let [webhooks, accounts] = columns(&[line]);
    execute(client, &sql, &[&webhooks, &accounts]).await.map(drop)
}

/// Makes the head of a line due now.
pub(crate) async fn hasten<C: GenericClient>(client: &C, line: Line, now: Timestamp) -> Result<()> {
    let sql = format!(
        "SELECT d.id, {PROGRESS} FROM delivery d WHERE d.id = ANY (ARRAY ( \
           SELECT first.id FROM {LINES} CROSS JOIN LATERAL ({}) first))",
        first_of_line!()
    );
    let [webhooks, accounts] = columns(&[line]);
    let Some(row) = first(client, &sql, &[&webhooks, &accounts]).await? else { return Ok(()) };
    progress::set(client, row.try_get(0)?, &progress(&row, 1)?.hastened(now)).await
}

/// Marks the heads of all lines of a store that was imported.
pub(crate) async fn mark_all<C: GenericClient>(client: &C) -> Result<()> {
    let sql = format!(
        "UPDATE delivery SET is_head = TRUE WHERE id IN ( \
           SELECT DISTINCT ON (d.webhook, d.account) d.id FROM delivery d JOIN webhook w ON w.id = d.webhook \
           WHERE d.state = 'pending' AND {IS_MARKED} ORDER BY d.webhook, d.account, d.event, d.id)"
    );
    execute(client, &sql, &[]).await.map(drop)
}
