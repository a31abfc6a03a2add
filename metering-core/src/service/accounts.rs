//! Opens accounts directly, for a program that knows its own customers.

use crate::access::account::{Account, AccountId};
use crate::access::key::ApiKey;
use crate::error::Error;
use crate::money::credits::Credits;
use crate::money::ledger::{LedgerKind, NewLedgerEntry};
use crate::random::SystemRandomness;
use crate::service::metering::Service;
use crate::store::{Created, NewAccount};

impl Service {
    /// Creates an account with `credits` free credits, and its key. The store keeps only a hash of the key, so give it
    /// to the account's owner now.
    ///
    /// For an email address, a wallet or other rate limits, use
    /// [`Store::create_account`](crate::Store::create_account).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_core::{MemoryStore, Service};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// assert_eq!(service.access().authenticate(Some(&key)).await?.id, account.id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] when the name is not valid or the credits are negative or too many, or when the
    /// store fails.
    pub async fn open_account(&self, agent_name: &str, credits: Credits) -> Result<(Account, ApiKey), Error> {
        let name = agent_name.parse().map_err(|error| Error::field("agent_name", error))?;
        if credits < Credits::ZERO {
            return Err(Error::field("credits", "must not be negative"));
        }
        let (id, key) = (AccountId::generate(&SystemRandomness), ApiKey::generate(&SystemRandomness));
        let mut account = NewAccount::new(id, name, key.hash(), self.access.now());
        if credits.is_positive() {
            let entry = NewLedgerEntry::new(LedgerKind::SignupBonus, credits, "Free credits of a new account");
            account.entries = vec![entry];
        }
        match self.access.store.create_account(account).await? {
            Created::Account(account) => Ok((account, key)),
            Created::OutOfRange => Err(Error::field("credits", "must not exceed what an account can hold")),
            // The account has neither an email address nor a wallet.
            Created::EmailTaken | Created::PayerTaken => Err(Error::Internal),
        }
    }
}
