//! Administration: the use cases of operators, over HTTP and on the command line.
//!
//! Nothing here checks permissions: the caller does. Every change takes an [`Action`], which says who makes it and why,
//! and is logged before and after (ADR 28).

mod accounts;
pub(crate) mod action;
mod catalogue;
mod configuration;
pub(crate) mod error;
mod imports;
mod keys;
mod operators;
pub mod payments;
mod plans;
mod prices;
mod refills;
mod rehearsal;
mod reports;
mod requests;
mod webhooks;

use std::fmt;
use std::sync::Arc;

use crate::access::account::{Account, AccountId};
use crate::catalogue::Catalogue;
use crate::clock::{Clock, SystemClock};
use crate::random::{Randomness, SystemRandomness};
use crate::store::FullStore;

pub use action::Action;
pub use catalogue::{check_catalogue, compare_catalogues};
pub use error::AdminError;
pub use prices::SWITCH_LEAD;

/// The use cases of operators on a store.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_sqlite::SqliteStore;
/// use metering_core::administration::{Action, Administration};
/// use metering_core::operators::Actor;
/// use metering_core::wire::admin::{CreateAccountRequest, EntryRequest};
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
    store: Arc<dyn FullStore>,
    catalogue: Option<Arc<Catalogue>>,
    clock: Arc<dyn Clock>,
    randomness: Arc<dyn Randomness>,
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
        let catalogue = None;
        Self { store, catalogue, clock: Arc::new(SystemClock), randomness: Arc::new(SystemRandomness) }
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

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn FullStore> {
        &self.store
    }

    /// The account with this id.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn account(&self, id: &AccountId) -> Result<Account, AdminError> {
        self.store.account(id).await?.ok_or_else(|| no_account(id))
    }

    /// Why the store reports that an account is missing or revoked.
    async fn missing_or_revoked(&self, id: &AccountId) -> AdminError {
        match self.account(id).await {
            Ok(Account { revoked_at: Some(at), .. }) => {
                AdminError::Conflict(format!("account {id} was revoked at {at}; a revoked account cannot be changed"))
            }
            Ok(_) => no_account(id),
            Err(error) => error,
        }
    }
}

fn no_account(id: &AccountId) -> AdminError {
    AdminError::NoSuchAccount(id.clone())
}
