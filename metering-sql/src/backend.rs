//! Runs scripts in transactions.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use metering_core::StoreError;
use metering_core::store::Erased;

use crate::boxed::BoxFuture;
use crate::executor::Executor;
use crate::fault::{Fault, Result};

/// A use case. It may run more than once, so it only reads and writes through its executor.
pub type Script = Arc<dyn for<'a> Fn(&'a mut dyn Executor) -> BoxFuture<'a, Result<Erased>> + Send + Sync>;

/// A database. Dyn-compatible, so that the scripts are compiled once.
pub trait Backend: Send + Sync {
    /// Runs a script in one transaction, after all earlier writes and before all later ones. Nothing that it wrote stays
    /// if it fails.
    fn write(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>>;

    /// Like [`Backend::write`], for a script that deletes many rows and may take long.
    fn delete(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>>;

    /// Expired rows of a table that one transaction deletes. Others wait for it.
    fn deleted_at_once(&self) -> u64;

    /// Runs a script that reads with a single statement.
    fn read(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>>;

    /// Runs a script that reads with several statements, all of one snapshot.
    fn snapshot(&self, script: Script) -> BoxFuture<'_, Result<Erased, StoreError>>;
}

/// A script with the arguments that it borrows.
pub type Call<A, T> = for<'a> fn(&'a mut dyn Executor, &'a A) -> BoxFuture<'a, Result<T>>;

/// Runs `script` with `args` in one transaction.
///
/// # Errors
/// Those of the script, and those of the database.
pub async fn write<A, T>(backend: &dyn Backend, args: A, script: Call<A, T>) -> Result<T, StoreError>
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    typed(backend.write(erased(args, script)).await)
}

/// Runs `script`, which reads with a single statement.
///
/// # Errors
/// Those of the script, and those of the database.
pub async fn read<A, T>(backend: &dyn Backend, args: A, script: Call<A, T>) -> Result<T, StoreError>
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    typed(backend.read(erased(args, script)).await)
}

/// Runs `script`, which reads one snapshot with several statements.
///
/// # Errors
/// Those of the script, and those of the database.
pub async fn snapshot<A, T>(backend: &dyn Backend, args: A, script: Call<A, T>) -> Result<T, StoreError>
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    typed(backend.snapshot(erased(args, script)).await)
}

/// Shared by all crates, as [`shared`](crate::shared) is.
#[inline(never)]
pub(crate) fn erased<A, T>(args: A, script: Call<A, T>) -> Script
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    let args = Arc::new(args);
    Arc::new(move |db| {
        let args = Arc::clone(&args);
        Box::pin(async move { Ok(Box::new(script(db, &args).await?) as Erased) })
    })
}

pub(crate) fn typed<T: 'static>(result: Result<Erased, StoreError>) -> Result<T, StoreError> {
    let mismatch = |_| StoreError::Broken("a script returned a value of another type".to_owned());
    result?.downcast().map(|value| *value).map_err(mismatch)
}

/// The result of a script whose executor never waits.
///
/// # Errors
/// Those of the script.
pub fn now<T>(script: impl Future<Output = Result<T>>) -> Result<T, StoreError> {
    match pin!(script).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(value)) => Ok(value),
        Poll::Ready(Err(Fault::Store(error))) => Err(error),
        Poll::Ready(Err(Fault::Driver(_))) => Err(StoreError::Broken("an unknown error of the driver".to_owned())),
        Poll::Pending => Err(StoreError::Broken("a script waited, though its executor never does".to_owned())),
    }
}

/// Runs a script that deletes many rows in one transaction.
pub(crate) async fn delete<A, T>(backend: &dyn Backend, args: A, script: Call<A, T>) -> Result<T, StoreError>
where
    A: Send + Sync + 'static,
    T: Send + Sync + 'static,
{
    typed(backend.delete(erased(args, script)).await)
}
