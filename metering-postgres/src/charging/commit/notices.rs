//! The rows that a commit writes when an owner gets an event: none in nearly every batch.

use std::collections::BTreeSet;

use futures_util::future::join3;
use metering_core::charging::Changes;

use crate::access::keys::DRAW_ACCESS;
use crate::connection::session::{Client, GenericClient, Prepared};
use crate::connection::value::Value;
use crate::error::Result;
use crate::events::outbox::{self, EventRows};

/// New alert levels of accounts.
const ALERTS: &str = "UPDATE meter SET alert_raised = new.raised FROM unnest($1::BIGINT[], $2::BIGINT[]) \
     AS new (account, raised) WHERE meter.account = new.account";

/// The statements of a commit for its alerts and events.
pub(super) struct Notices<'s> {
    alerts: Option<Prepared<'s>>,
    /// Other nodes must not use the meters that they have of these accounts' keys.
    access: Option<Prepared<'s>>,
    events: Option<Prepared<'s>>,
    levels: [Vec<i64>; 2],
    unmarked: Vec<i64>,
    rows: EventRows,
}

impl<'s> Notices<'s> {
    /// Prepares the statements, if there are any, so that they can be pipelined.
    pub(super) async fn prepare(client: &'s Client, changes: &Changes<i64, i64>) -> Result<Self> {
        let (accounts, levels) =
            changes.alerts.iter().map(|(account, level)| (*account, i64::from(level.number()))).unzip();
        let rows = EventRows::new(changes.events.iter().map(|(account, event)| (*account, event)));
        let (levels, unmarked) = ([accounts, levels], unmarked(changes));
        let alerts = prepared(client, ALERTS, changes.alerts.is_empty()).await?;
        let access = prepared(client, DRAW_ACCESS, unmarked.is_empty()).await?;
        let events = prepared(client, outbox::INSERT, rows.is_empty()).await?;
        Ok(Self { alerts, access, events, levels, unmarked, rows })
    }

    /// Runs them. The meters of the accounts must be locked by an earlier statement.
    pub(super) async fn run(&self, client: &Client) -> std::result::Result<(), tokio_postgres::Error> {
        let (levels, access): ([&dyn Value; 2], [&dyn Value; 1]) =
            ([&self.levels[0], &self.levels[1]], [&self.unmarked]);
        let events = self.rows.values();
        let (alerts, access, events) = join3(
            client.execute_if_any(self.alerts.as_ref(), &levels),
            client.execute_if_any(self.access.as_ref(), &access),
            client.execute_if_any(self.events.as_ref(), &events),
        )
        .await;
        alerts?;
        access?;
        events.map(drop)
    }
}

/// Prepares a statement, if it has anything to write.
async fn prepared<'s>(client: &'s Client, sql: &'s str, is_empty: bool) -> Result<Option<Prepared<'s>>> {
    if is_empty { Ok(None) } else { Ok(Some(client.prepare(sql).await?)) }
}

/// The accounts in which a key's meter changed, but nothing that other nodes would see in the account's own meter: a
/// budget refused a request, and the batch has nothing else for the account.
pub(super) fn unmarked(changes: &Changes<i64, i64>) -> Vec<i64> {
    // Every such change comes with an event.
    if changes.events.is_empty() {
        return Vec::new();
    }
    let mut accounts: BTreeSet<i64> = changes.keys.iter().map(|(account, ..)| *account).collect();
    for marked in changes.usage.iter().map(|usage| usage.account) {
        accounts.remove(&marked);
    }
    for opened in changes.holds.iter().filter(|change| change.is_new) {
        accounts.remove(&opened.account);
    }
    accounts.into_iter().collect()
}
