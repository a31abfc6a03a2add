//! What every admin command starts with: the store's location, the configuration and the clock.

use std::sync::Arc;

use metering_config::Sources;
use metering_core::{Account, AccountId, Clock, FullStore, Store, StoreError, SystemClock, Timestamp};

use crate::database::{Database, IfMissing, Location};
use crate::failure::Failure;

/// How many items are read per page.
pub(crate) const PAGE: u32 = 1_000;

/// One run of the program.
#[derive(Debug)]
pub(crate) struct Session {
    location: Location,
    sources: Sources,
}

impl Session {
    pub(crate) fn new(location: Location, sources: Sources) -> Self {
        Self { location, sources }
    }

    /// The configuration that the command was given.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// The store, which must exist.
    pub(crate) async fn store(&self) -> Result<Arc<dyn FullStore>, Failure> {
        Ok(self.database().await?.store())
    }

    /// The store, if it exists.
    pub(crate) async fn store_if_any(&self) -> Result<Option<Arc<dyn FullStore>>, Failure> {
        if self.location.exists() { self.store().await.map(Some) } else { Ok(None) }
    }

    /// The store, created if it does not exist.
    pub(crate) async fn store_or_new(&self) -> Result<Arc<dyn FullStore>, Failure> {
        Ok(self.location.open(IfMissing::Create).await?.store())
    }

    /// The database, which must exist.
    pub(crate) async fn database(&self) -> Result<Database, Failure> {
        self.location.open(IfMissing::Fail).await
    }
}

/// The account of that id.
pub(crate) async fn find(store: &dyn Store, id: &AccountId) -> Result<Account, Failure> {
    store.account(id).await?.ok_or_else(|| no_account(id))
}

/// Why a store reports that an account is missing or revoked.
pub(crate) async fn missing_or_revoked(store: &dyn Store, id: &AccountId) -> Failure {
    match store.account(id).await {
        Ok(Some(Account { revoked_at: Some(at), .. })) => {
            Failure::Conflict(format!("account {id} was revoked at {at}; a revoked account cannot be changed"))
        }
        Ok(_) => no_account(id),
        Err(error) => error.into(),
    }
}

/// The failure for an account that does not exist.
pub(crate) fn no_account(id: &AccountId) -> Failure {
    Failure::NotFound(format!("no account {id}; `metering admin account list` shows all accounts"))
}

/// All accounts, oldest first.
pub(crate) async fn all_accounts(store: &dyn Store) -> Result<Vec<Account>, StoreError> {
    let mut accounts = Vec::new();
    let mut after = None;
    loop {
        let page = store.accounts(after.as_ref(), PAGE).await?;
        accounts.extend(page.items);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(accounts),
        }
    }
}
