//! The storage contract for holds.

use async_trait::async_trait;
use metering_core::charging::{Hold, HoldId};
use metering_core::store::HoldStore;
use metering_core::{AccountId, StoreError, Timestamp};

use crate::charging::holds::{HOLD_COLUMNS, HOLD_TABLES, hold};
use crate::connection::session::GenericClient;
use crate::connection::value::Values;
use crate::error::Result;
use crate::rows::all;
use crate::store::PostgresStore;

#[async_trait]
impl HoldStore for PostgresStore {
    async fn hold(&self, id: &HoldId) -> Result<Option<Hold>, StoreError> {
        let id = *id;
        let found = self.read(move |client| {
            Box::pin(async move { holds(client, "h.id = $1", &[&id.as_bytes().as_slice()]).await })
        });
        Ok(found.await?.into_iter().next())
    }

    async fn open_holds(&self, account: &AccountId, limit: u32) -> Result<Vec<Hold>, StoreError> {
        self.read(|client| {
            let account = account.clone();
            Box::pin(async move {
                let condition = "h.account = (SELECT id FROM account WHERE org_id = $1) AND h.settled_at IS NULL \
                                 ORDER BY h.created_at DESC, h.id DESC LIMIT $2";
                holds(client, condition, &[&account.as_str(), &i64::from(limit)]).await
            })
        })
        .await
    }

    async fn expired_holds(&self, now: Timestamp, limit: u32) -> Result<Vec<Hold>, StoreError> {
        self.read(move |client| {
            Box::pin(async move {
                let condition = "h.expires_at <= $1 AND h.settled_at IS NULL ORDER BY h.expires_at, h.id LIMIT $2";
                holds(client, condition, &[&now.unix_millis(), &i64::from(limit)]).await
            })
        })
        .await
    }
}

async fn holds<C: GenericClient>(client: &C, condition: &str, values: Values<'_>) -> Result<Vec<Hold>> {
    let sql = format!("SELECT {HOLD_COLUMNS} FROM {HOLD_TABLES} WHERE {condition}");
    all(client, &sql, values).await?.iter().map(|row| hold(row, 0)).collect()
}
