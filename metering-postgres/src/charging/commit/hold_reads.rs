//! Reads the holds that a batch updates, or that repeated requests opened, with the locks of their accounts' meters.

use futures_util::future::join3;
use metering_core::charging::{HoldId, Posting};
use metering_sql::holds::COLUMNS;
use tokio_postgres::Row;

use super::batch::Item;
use crate::charging::access::{self, Access, KeyMeters};
use crate::charging::holds::ASKED_HOLD;
use crate::connection::session::{Client, GenericClient};
use crate::connection::value::{Value, Values};
use crate::error::Result;
use crate::rows::all;

/// The holds of updates.
const UPDATED: &str = "unnest($1::BIGINT[], $2::BYTEA[]) AS asked (account, id)";

/// The holds that requests opened.
const REQUESTED: &str = "(SELECT r.account, r.hold AS id \
     FROM unnest($1::BIGINT[], $2::TEXT[]) AS q (account, request_id) \
     JOIN request_id r ON r.account = q.account AND r.request_id = q.request_id WHERE r.hold IS NOT NULL) AS asked";

/// The holds that a batch reads. Most batches have none, and need no statements for that.
#[derive(Default)]
pub(super) struct HoldReads<'i> {
    accounts: Vec<i64>,
    ids: Vec<&'i [u8]>,
    /// The holds of other nodes, whose keys are not cached.
    foreign: Vec<HoldId>,
    of_requests: Vec<i64>,
    requests: Vec<String>,
}

impl<'i> HoldReads<'i> {
    /// Prepares the statements, so that they can be pipelined with the locks.
    pub(super) async fn prepare(client: &Client, items: &'i [Item<'_>]) -> Result<Self> {
        let mut reads = Self::default();
        for item in items {
            let Some(account) = item.account else { continue };
            match (item.posting, item.request()) {
                (Posting::Hold(update), _) => {
                    reads.accounts.push(account);
                    reads.ids.push(update.id.as_bytes());
                    if item.key.is_none() {
                        reads.foreign.push(update.id);
                    }
                }
                (Posting::Charge(charge), Some(request)) if charge.hold.is_some() => {
                    reads.of_requests.push(account);
                    reads.requests.push(request.as_str().to_owned());
                }
                (Posting::Charge(_) | Posting::Refund(_) | Posting::Settle(_), _) => {}
            }
        }
        if !reads.ids.is_empty() {
            client.prepare(&select(UPDATED)).await?;
        }
        if !reads.requests.is_empty() {
            client.prepare(&select(REQUESTED)).await?;
        }
        Ok(reads)
    }

    /// Reads the holds, and the keys of those from other nodes. The meters must be locked by an earlier statement.
    pub(super) async fn run(&self, client: &Client) -> Result<(Vec<Row>, (Access, KeyMeters))> {
        let (ids, requests): ([&dyn Value; 2], [&dyn Value; 2]) =
            ([&self.accounts, &self.ids], [&self.of_requests, &self.requests]);
        let (updated, requested, keys) = join3(
            read(client, UPDATED, !self.ids.is_empty(), &ids),
            read(client, REQUESTED, !self.requests.is_empty(), &requests),
            async {
                match self.foreign.is_empty() {
                    true => Ok(Default::default()),
                    false => access::read(client, &[], &[], &self.foreign).await,
                }
            },
        )
        .await;
        let mut holds = updated?;
        holds.extend(requested?);
        Ok((holds, keys?))
    }
}

async fn read(client: &Client, asked: &str, is_needed: bool, values: Values<'_>) -> Result<Vec<Row>> {
    if is_needed { all(client, &select(asked), values).await } else { Ok(Vec::new()) }
}

fn select(asked: &str) -> String {
    format!(
        "SELECT h.account, h.line, {COLUMNS} FROM {asked} {ASKED_HOLD} \
         JOIN account a ON a.id = h.account JOIN usage_line n ON n.id = h.line WHERE h.account = asked.account"
    )
}
