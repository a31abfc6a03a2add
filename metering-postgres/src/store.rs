//! [`PostgresStore`]: opening it.

pub(crate) mod accounts;
pub(crate) mod authorizations;
pub(crate) mod check;
pub(crate) mod events;
pub(crate) mod expiry;
pub(crate) mod holds;
pub(crate) mod imports;
mod inspect;
pub(crate) mod keys;
pub(crate) mod operators;
pub(crate) mod payments;
pub(crate) mod signups;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use metering_core::StoreError;

use crate::charging::known::SharedKnown;
use crate::charging::recent_meters::RecentMeters;
use crate::connection::connect::PostgresConfig;
use crate::connection::session::Pool;
use crate::migrations;
use crate::transfer::import::Claim;

type Result<T> = std::result::Result<T, StoreError>;

/// A [`Store`](metering_core::Store) in a PostgreSQL database, which any number of nodes may share. Cheap to clone.
///
/// Not run here, because it needs a PostgreSQL server:
///
/// ```no_run
/// use metering_core::Store;
/// use metering_postgres::PostgresStore;
///
/// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect(&"postgres://metering@localhost/metering".parse()?).await?;
/// store.check().await?;
/// assert_eq!(store.verify().await?.discrepancies, []);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore {
    pub(crate) pool: Pool,
    pub(crate) known: SharedKnown,
    pub(crate) left: Arc<RecentMeters>,
    /// The claim for a move to this store, if it was opened for one.
    pub(crate) claim: Option<Arc<Claim>>,
    shown: String,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(&self.shown).finish()
    }
}

impl PostgresStore {
    /// Connects, and creates or migrates the schema if necessary. Needs a Tokio runtime.
    ///
    /// Not run here, because it needs a PostgreSQL server:
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use metering_core::Service;
    /// use metering_postgres::{PostgresConfig, PostgresStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config: PostgresConfig = "postgres://metering:secret@db.example.com/metering?sslmode=require".parse()?;
    /// let store = Arc::new(PostgresStore::connect(&config).await?);
    /// let service = Service::with_defaults(store);
    /// let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// assert_eq!(service.access().authenticate(Some(&key)).await?.id, account.id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the database cannot be reached or written to, has another program's tables, a newer schema or an encoding
    /// other than UTF-8, or when a move of a store to it has not finished.
    pub async fn connect(config: &PostgresConfig) -> Result<Self> {
        Self::open(config, true).await
    }

    /// Like [`PostgresStore::connect`], but the database must already have the schema: a mistyped name must not look
    /// like an empty store.
    ///
    /// Not run here, because it needs a PostgreSQL server:
    ///
    /// ```no_run
    /// use metering_core::Store;
    /// use metering_postgres::PostgresStore;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// // A tool that only reads must not create a database by accident.
    /// let store = PostgresStore::connect_existing(&"postgres://metering@localhost/metering".parse()?).await?;
    /// let verification = store.verify().await?;
    /// println!("{} accounts, {} discrepancies", verification.accounts, verification.discrepancies.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`PostgresStore::connect`], and when there is no schema.
    pub async fn connect_existing(config: &PostgresConfig) -> Result<Self> {
        Self::open(config, false).await
    }

    /// Boxed: the compiler then generates its code once, in this crate, and not again in each program.
    fn open(config: &PostgresConfig, make: bool) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move {
            let pool = config.pool().await?;
            migrations::migrate(&pool, make).await?;
            let store = Self::new(pool, config, None);
            store.read(|client| Box::pin(migrations::refuse_unfinished(client))).await?;
            Ok(store)
        })
    }

    pub(crate) fn new(pool: Pool, config: &PostgresConfig, claim: Option<Arc<Claim>>) -> Self {
        Self { pool, known: SharedKnown::default(), left: Arc::default(), claim, shown: config.to_string() }
    }
}
