//! The store of one transaction: what [`FullStore::transact`](metering_core::FullStore::transact) gives to its steps.
//!
//! It runs the same scripts as any other store, on the transaction's executor. Once one statement has failed, the
//! transaction fails, even if its steps ignore the error.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metering_core::StoreError;
use metering_core::store::{Erased, Steps};

use crate::backend::{Backend, Script};
use crate::boxed::BoxFuture;
use crate::deliveries;
use crate::executor::Executor;
use crate::fault::{Fault, Result};

/// Runs steps in one transaction.
///
/// # Errors
/// Those of the steps, and those of the database.
pub async fn transact(backend: &dyn Backend, steps: Steps) -> Result<Erased, StoreError> {
    backend.write(script(steps)).await
}

fn script(steps: Steps) -> Script {
    Arc::new(move |db| {
        let steps = Arc::clone(&steps);
        Box::pin(async move {
            let store = Transaction { db: Mutex::new(Some(db)), fault: Mutex::default() };
            let result = steps(&store).await;
            store.end(result)
        })
    })
}

struct Transaction<'t> {
    /// `None` while a script runs.
    db: Mutex<Option<&'t mut dyn Executor>>,
    /// The first failure of a script. The backend decides by it whether to run the steps again.
    fault: Mutex<Option<Fault>>,
}

impl<'t> Transaction<'t> {
    async fn run(&self, script: Script) -> Result<Erased, StoreError> {
        let db = lock(&self.db).take().ok_or_else(|| impossible("two steps at the same time are"))?;
        let result = script(db).await;
        *lock(&self.db) = Some(db);
        result.map_err(|fault| self.failed(fault))
    }

    /// Keeps the failure. The steps only see that there was one.
    fn failed(&self, fault: Fault) -> StoreError {
        lock(&self.fault).get_or_insert(fault);
        StoreError::Unavailable("a step of the transaction failed".into())
    }

    fn end(self, result: Result<Erased, StoreError>) -> Result<Erased> {
        match self.fault.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(fault) => Err(fault),
            None => Ok(result?),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn impossible(what: &str) -> StoreError {
    StoreError::Unavailable(format!("{what} not possible within a transaction").into())
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

impl Backend for Transaction<'_> {
    fn write(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.run(script))
    }

    fn delete(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.run(script))
    }

    fn deleted_at_once(&self) -> u64 {
        u64::MAX
    }

    fn read(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.run(script))
    }

    fn snapshot(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>> {
        Box::pin(self.run(script))
    }
}

crate::store! {
    Transaction<'_> {
        async fn commit(&self, _postings: Vec<Posting>, _now: Timestamp) -> Result<Vec<Outcome>> {
            Err(impossible("charges are"))
        }

        async fn activity(&self, _id: &AccountId, _limit: u32) -> Result<Vec<Activity>> {
            Err(impossible("a list of activity is"))
        }

        async fn verify(&self) -> Result<Verification> {
            crate::snapshot(self, (), |db, ()| crate::shared(crate::verify::verify(db))).await
        }

        async fn forget_expired(&self, now: Timestamp) -> Result<u64> {
            crate::expiry::forget(self, now).await
        }

        async fn check(&self) -> Result<()> {
            Ok(())
        }
    }
}

crate::event_store! {
    Transaction<'_> {
        /// Backends can list some deliveries without reading the others.
        async fn deliveries(
            &self,
            account: Option<&AccountId>,
            filter: DeliveryFilter,
            after: Option<&Cursor>,
            limit: u32,
        ) -> Result<Page<Delivery>> {
            if account.is_some() || filter != DeliveryFilter::default() {
                return Err(impossible("a list of some of the deliveries is"));
            }
            crate::read(self, (after.cloned(), limit), |db, (after, limit)| {
                Box::pin(async move { deliveries::newest(db, after.as_ref(), *limit).await })
            })
            .await
        }
    }
}

crate::authorization_store!(Transaction<'_>);
crate::browser_session_store!(Transaction<'_>);
crate::child_account_store!(Transaction<'_>);
crate::full_store!(Transaction<'_>);
crate::hold_store!(Transaction<'_>);
crate::import_store!(Transaction<'_>);
crate::key_store!(Transaction<'_>);
crate::log_store!(Transaction<'_>);
crate::member_store!(Transaction<'_>);
crate::oauth_store!(Transaction<'_>);
crate::operator_store!(Transaction<'_>);
crate::payment_store!(Transaction<'_>);
crate::price_store!(Transaction<'_>);
crate::refill_store!(Transaction<'_>);
crate::signup_store!(Transaction<'_>);
crate::usage_sink_store!(Transaction<'_>);
