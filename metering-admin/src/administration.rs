//! The use cases on a store. Those of each subject are in its own file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use metering_core::access::{Account, AccountId};
use metering_core::catalogue::Catalogue;
use metering_core::chains::Address;
use metering_core::clock::{Clock, SystemClock};
use metering_core::payments::ExchangeRates;
use metering_core::random::{Randomness, SystemRandomness};
use metering_core::store::FullStore;

use crate::error::AdminError;

/// The reason why a catalogue cannot be served, if it cannot.
type FindConflict = dyn Fn(&Catalogue) -> Option<String> + Send + Sync;

/// The use cases of operators on a store.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_sqlite::SqliteStore;
/// use metering_admin::{Action, Administration};
/// use metering_core::operators::Actor;
/// use metering_admin::wire::{CreateAccountRequest, EntryRequest};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let administration = Administration::new(Arc::new(SqliteStore::in_memory()?));
/// let action = Action::new(Actor::CommandLine("jo".to_owned()), "First customer")?;
/// let request = CreateAccountRequest { agent_name: "my-agent".to_owned(), ..CreateAccountRequest::default() };
/// let (account, _key) = administration.create_account(&action, &request).await?;
///
/// let action = Action::new(Actor::CommandLine("jo".to_owned()), "Ticket 311")?;
/// let grant = EntryRequest { credits: "5".parse()?, note: None, reason: String::new() };
/// let account = administration.grant(&action, &account.id, &grant).await?;
/// assert_eq!(account.totals.balance.to_string(), "5");
///
/// let log = administration.audit_log(None, None, 10).await?;
/// assert_eq!(log.entries[0].action, "account.grant");
/// assert_eq!(log.entries[0].reason, "Ticket 311");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Administration {
    pub(crate) store: Arc<dyn FullStore>,
    pub(crate) catalogue: Option<Arc<Catalogue>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) randomness: Arc<dyn Randomness>,
    /// The recipients that plans may name, by chain, if not every one.
    pub(crate) recipients: Option<Vec<(u64, Address)>>,
    pub(crate) conflict: Arc<FindConflict>,
    /// The rates of the currency in which receipts show the value of payments.
    pub(crate) rates: Option<Arc<ExchangeRates>>,
}

impl fmt::Debug for Administration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Administration").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Administration {
    /// Administers a store, with the system's clock and randomness.
    #[must_use]
    pub fn new(store: Arc<dyn FullStore>) -> Self {
        Self {
            store,
            catalogue: None,
            clock: Arc::new(SystemClock),
            randomness: Arc::new(SystemRandomness),
            recipients: None,
            conflict: Arc::new(|_: &Catalogue| None),
            rates: None,
        }
    }

    /// The same, with another clock.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The same, for a service with this catalogue: the routes that keys may call are checked against it.
    #[must_use]
    pub fn with_catalogue(self, catalogue: Arc<Catalogue>) -> Self {
        Self { catalogue: Some(catalogue), ..self }
    }

    /// The same, where plans may name only these recipients, by chain, or the one that they have already. For callers
    /// on the network: a stolen token must not be enough to redirect payments.
    #[must_use]
    pub fn with_recipients(self, recipients: Vec<(u64, Address)>) -> Self {
        Self { recipients: Some(recipients), ..self }
    }

    /// The same, for a service that cannot serve every catalogue: `conflict` gives the reason.
    #[must_use]
    pub fn with_conflict(self, conflict: impl Fn(&Catalogue) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { conflict: Arc::new(conflict), ..self }
    }

    /// The same, where assigned payments have a value in a currency, for receipts.
    #[must_use]
    pub fn with_rates(self, rates: Option<Arc<ExchangeRates>>) -> Self {
        Self { rates, ..self }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn FullStore> {
        &self.store
    }

    /// The names of accounts, by their ids. Leaves out those that do not exist.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn agent_names(&self, ids: BTreeSet<&str>) -> Result<BTreeMap<String, String>, AdminError> {
        let mut names = BTreeMap::new();
        for id in ids {
            let Ok(account) = id.parse::<AccountId>() else { continue };
            if let Some(account) = self.store.account(&account).await? {
                names.insert(id.to_owned(), account.agent_name.to_string());
            }
        }
        Ok(names)
    }

    /// The account with this id.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn account(&self, id: &AccountId) -> Result<Account, AdminError> {
        self.store.account(id).await?.ok_or_else(|| no_account(id))
    }
}

/// The account with this id, which does not change until the transaction ends.
pub(crate) async fn locked(store: &dyn FullStore, id: &AccountId) -> Result<Account, AdminError> {
    store.lock_account(id).await?.ok_or_else(|| no_account(id))
}

/// Why the store reports that an account is missing or revoked.
pub(crate) async fn missing_or_revoked(store: &dyn FullStore, id: &AccountId) -> AdminError {
    match store.account(id).await {
        Ok(Some(Account { revoked_at: Some(at), .. })) => {
            AdminError::Conflict(format!("account {id} was revoked at {at}; a revoked account cannot be changed"))
        }
        Ok(_) => no_account(id),
        Err(error) => error.into(),
    }
}

pub(crate) fn no_account(id: &AccountId) -> AdminError {
    AdminError::NoSuchAccount(id.clone())
}
