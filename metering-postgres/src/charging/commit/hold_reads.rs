//! Reads the holds that a batch updates, with the locks of their accounts' meters.

use futures_util::future::join;
use metering_core::charging::HoldId;
use tokio_postgres::Row;

use super::Item;
use crate::charging::access::{self, Access, KeyMeters};
use crate::charging::holds::{ASKED_HOLD, HOLD_COLUMNS};
use crate::connection::session::{Client, GenericClient};
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::all;

/// What is read for the updates of a batch.
pub(super) struct HoldReads<'i> {
    /// Empty if there is nothing to read.
    sql: String,
    accounts: Vec<i64>,
    ids: Vec<&'i [u8]>,
    /// The holds of other nodes, whose keys are not known.
    foreign: Vec<HoldId>,
}

impl<'i> HoldReads<'i> {
    /// Prepares the statement, if there is anything to read, so that it can be pipelined with the locks.
    pub(super) async fn prepare(client: &Client, items: &'i [Item<'_>]) -> Result<Self> {
        let mut reads = Self { sql: String::new(), accounts: Vec::new(), ids: Vec::new(), foreign: Vec::new() };
        for item in items {
            let Some((account, id)) = item.account.zip(item.hold()) else { continue };
            reads.accounts.push(account);
            reads.ids.push(id.as_bytes());
            if item.key.is_none() {
                reads.foreign.push(*id);
            }
        }
        if !reads.ids.is_empty() {
            reads.sql = format!(
                "SELECT h.account, h.line, {HOLD_COLUMNS} \
                 FROM unnest($1::BIGINT[], $2::BYTEA[]) AS asked (account, id) {ASKED_HOLD} \
                 JOIN account a ON a.id = h.account JOIN usage_line n ON n.id = h.line \
                 WHERE h.account = asked.account"
            );
            client.prepare(&reads.sql).await?;
        }
        Ok(reads)
    }

    /// Reads the holds, and the keys of those from other nodes. The meters must be locked by an earlier statement.
    pub(super) async fn run(&self, client: &Client) -> Result<(Vec<Row>, (Access, KeyMeters))> {
        if self.ids.is_empty() {
            return Ok(Default::default());
        }
        let values: [&dyn Value; 2] = [&self.accounts, &self.ids];
        let (holds, keys) = join(all(client, &self.sql, &values), async {
            match self.foreign.is_empty() {
                true => Ok(Default::default()),
                false => access::read(client, &[], &[], &self.foreign).await,
            }
        })
        .await;
        Ok((holds?, keys?))
    }
}
