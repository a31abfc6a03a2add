//! The stored data of an account, for its owner.

use crate::access::credentials::Caller;
use crate::access::role::Right;
use crate::error::{ChildAccountError, Error, MemberError};
use crate::payments::payment::PaymentError;
use crate::service::metering::Service;
use crate::service::notes::account_notes;
use crate::wire::{AccountExportDocument, DeliveriesDocument, NoteDocument, WebhooksDocument};

/// Days of usage in an export.
const DAYS: u32 = 366;
/// The most items that the calls for each part return at once.
const ENTRIES: u32 = 10_000;
const ACTIVITY: u32 = 1_000;
const PAGE: u32 = 100;

impl Service {
    /// Everything that is stored of the caller's account, except secrets and their hashes. Long lists are cut, with the place
    /// where they continue. The parts are read one after the other.
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
    /// let export = service.export(Some(&key)).await?;
    /// assert_eq!(export.account.org_id, account.id.as_str());
    /// assert_eq!(export.ledger.entries.len(), 1);
    /// assert!(export.webhooks.is_none(), "this service has none");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] unless it is the account's first one or an owner's
    /// session, or when the store fails.
    pub async fn export(&self, caller: impl Into<Caller<'_>>) -> Result<AccountExportDocument, Error> {
        let caller = caller.into();
        let account = self.access.first_holder(caller, Right::Own).await?.account;
        let now = self.access.now();
        let today = now.day();
        let webhooks = offered(self.webhooks().list(caller).await)?;
        let deliveries = match &webhooks {
            Some(webhooks) => Some(self.deliveries_to(caller, webhooks).await?),
            None => None,
        };
        Ok(AccountExportDocument {
            exported_at: now.to_string(),
            account: self.usage().balance(caller).await?,
            keys: self.keys().list(caller, None, PAGE).await?,
            ledger: self.usage().ledger(caller, None, ENTRIES).await?,
            usage: self.usage().daily(caller, Some(today.minus_days(DAYS - 1)), Some(today)).await?,
            activity: self.usage().activity(caller, ACTIVITY).await?,
            requests: self.holds().list(caller).await?,
            receipts: offered(self.payments().receipts(caller, None, PAGE).await)?,
            buyer: offered(self.payments().buyer(caller).await)?,
            auto_top_up: offered(self.payments().auto_top_up(caller).await)?,
            card_charges: offered(self.payments().card_charges(&account.id).await)?,
            linked_wallets: offered(self.payments().linked_wallets(&account.id).await)?,
            webhooks,
            deliveries,
            events: offered(self.webhooks().events(caller, None, PAGE).await)?,
            sessions: offered(self.browser_sessions().list(caller).await)?,
            oauth_grants: match self.oauth() {
                Some(oauth) => Some(oauth.grants(&account.id).await?),
                None => None,
            },
            members: offered(self.members().list(caller).await)?,
            account_log: offered(self.members().log(caller, None, PAGE).await)?,
            child_accounts: offered(self.child_accounts().list(caller, None, PAGE).await)?,
            notes: match &self.notes {
                Some(store) => {
                    let notes = account_notes(&**store, &account.id).await?.into_iter();
                    Some(notes.map(|note| NoteDocument { by: None, ..note }).collect())
                }
                None => None,
            },
        })
    }

    async fn deliveries_to(
        &self,
        caller: Caller<'_>,
        webhooks: &WebhooksDocument,
    ) -> Result<Vec<DeliveriesDocument>, Error> {
        let mut deliveries = Vec::with_capacity(webhooks.data.len());
        for webhook in &webhooks.data {
            match self.webhooks().deliveries(caller, &webhook.id, None, None, None, PAGE).await {
                // Deleted meanwhile.
                Err(Error::NoSuchWebhook) => deliveries.push(DeliveriesDocument { data: Vec::new(), next: None }),
                listed => deliveries.push(listed?),
            }
        }
        Ok(deliveries)
    }
}

/// `None` if the service does not offer the feature of a part.
fn offered<T>(part: Result<T, Error>) -> Result<Option<T>, Error> {
    match part {
        Err(Error::WebhooksNotOffered | Error::SessionsNotOffered) => Ok(None),
        Err(Error::Member(MemberError::NotOffered) | Error::ChildAccount(ChildAccountError::NotOffered)) => Ok(None),
        Err(Error::Payment(cause)) if matches!(*cause, PaymentError::NotConfigured) => Ok(None),
        part => part.map(Some),
    }
}
