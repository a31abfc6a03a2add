//! The store: a connection, and the storage traits by the macros of `metering-sql`.

use std::future::ready;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metering_core::StoreError;
use metering_core::backend::one_more_than;
use metering_sql::{Backend, BoxFuture, Erased, Script, deliveries, events, now, values};
use rusqlite::Connection;

use crate::statements::{Statements, store_error};
use crate::{commit, history};

/// A database in memory.
#[derive(Debug)]
pub(crate) struct ToyStore {
    connection: Mutex<Connection>,
}

impl ToyStore {
    pub(crate) const fn new(connection: Connection) -> Self {
        Self { connection: Mutex::new(connection) }
    }

    /// Runs statements in a transaction, after all earlier ones and before all later ones.
    fn transact<T>(&self, run: impl FnOnce(&mut Statements<'_>) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let connection: &mut Connection = &mut self.lock();
        connection.execute_batch("BEGIN IMMEDIATE").map_err(store_error)?;
        let done = run(&mut Statements(connection));
        connection.execute_batch(if done.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(store_error)?;
        done
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No step waits, so the first poll completes a script.
    fn run(&self, script: &Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(ready(self.transact(|db| now(script(db)))))
    }
}

impl Backend for ToyStore {
    fn write(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        self.run(&script)
    }

    fn delete(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        self.run(&script)
    }

    fn deleted_at_once(&self) -> u64 {
        500
    }

    fn read(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        self.run(&script)
    }

    fn snapshot(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        self.run(&script)
    }
}

metering_sql::store! {
    ToyStore {
        async fn commit(&self, postings: Vec<Posting>, now: Timestamp) -> Result<Vec<Outcome>> {
            self.transact(|db| commit::commit(db, postings, now))
        }

        async fn activity(&self, id: &AccountId, limit: u32) -> Result<Vec<Activity>> {
            metering_sql::snapshot(self, (id.clone(), limit), |db, (id, limit)| {
                Box::pin(history::newest(db, id, *limit))
            })
            .await
        }

        async fn verify(&self) -> Result<Verification> {
            metering_sql::snapshot(self, (), |db, ()| Box::pin(metering_sql::verify::verify(db))).await
        }

        async fn forget_expired(&self, now: Timestamp) -> Result<u64> {
            metering_sql::expiry::forget(self, now).await
        }

        async fn check(&self) -> Result<()> {
            metering_sql::write(self, (), |db, ()| Box::pin(metering_sql::probe::touch(db))).await
        }
    }
}

metering_sql::event_store! {
    ToyStore {
        /// A real backend has a condition for each combination, so that each list is read from an index.
        async fn deliveries(
            &self,
            account: Option<&AccountId>,
            filter: DeliveryFilter,
            after: Option<&Cursor>,
            limit: u32,
        ) -> Result<Page<Delivery>> {
            const LISTED: &str = "delivery.id < ?1 \
                AND (?3 IS NULL OR delivery.webhook = (SELECT w.id FROM webhook w WHERE w.public_id = ?3)) \
                AND (?4 IS NULL OR delivery.webhook <> 0 \
                  AND delivery.account = (SELECT a.id FROM account a WHERE a.org_id = ?4)) \
                AND (?5 IS NULL OR delivery.state = ?5) \
                AND (?6 IS NULL OR event.kind = ?6) ORDER BY delivery.id DESC LIMIT ?2";
            let before = metering_sql::now(ready(events::before(after)))?;
            let values = values![before, one_more_than(limit), filter.webhook, account, filter.state, filter.kind];
            metering_sql::read(self, (values, limit), |db, (values, limit)| {
                Box::pin(deliveries::page(db, LISTED, values, *limit))
            })
            .await
        }
    }
}

metering_sql::authorization_store!(ToyStore);
metering_sql::browser_session_store!(ToyStore);
metering_sql::child_account_store!(ToyStore);
metering_sql::full_store!(ToyStore);
metering_sql::hold_store!(ToyStore);
metering_sql::import_store!(ToyStore);
metering_sql::key_store!(ToyStore);
metering_sql::log_store!(ToyStore);
metering_sql::member_store!(ToyStore);
metering_sql::oauth_store!(ToyStore);
metering_sql::operator_store!(ToyStore);
metering_sql::payment_store!(ToyStore);
metering_sql::price_store!(ToyStore);
metering_sql::refill_store!(ToyStore);
metering_sql::signup_store!(ToyStore);
metering_sql::usage_sink_store!(ToyStore);
