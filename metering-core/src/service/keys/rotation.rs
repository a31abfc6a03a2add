//! Key rotation by the holder of the key. Works for every account; [`Recovery`](crate::service::Recovery) is for
//! accounts whose key is lost.

use crate::access::account::Account;
use crate::access::credentials::Caller;
use crate::access::issued_key::{KeyHolder, KeyStatus};
use crate::access::key::{ApiKey, KeyFault, KeyHash};
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::charging::delivery::IdempotencyKey;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::random::SystemRandomness;
use crate::service::keys::changed_key;
use crate::service::keys::terms::end_of_grace;
use crate::service::{Access, Keys};
use crate::store::{KeyChange, StoreError};
use crate::wire::{RemainingKeyDocument, RotateKeyRequest, VerifyResponse};

/// How many keys are read at a time.
const KEYS_PER_READ: u32 = 100;

impl Keys<'_> {
    /// Replaces the secret of a live key. The old one is refused from then on; other keys of the account are unchanged.
    ///
    /// With an idempotency key of at least 32 characters, a retry gets the same new key for as long as that key is
    /// live, also from another node. Without one, a lost response means a lost key.
    ///
    /// ```
    /// use metering_core::charging::IdempotencyKey;
    /// use metering_core::wire::RotateKeyRequest;
    /// use metering_core::{MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, old_key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let rotation = IdempotencyKey::parse("8e03978e-40d5-43e8-bc93-6894a57f9324")?;
    /// let (keys, request) = (service.keys(), RotateKeyRequest::default());
    /// let rotated = keys.rotate_current(Some(&old_key), &request, Some(&rotation)).await?;
    /// let new_key = rotated.api_key.key();
    /// assert!(service.usage().balance(Some(&old_key)).await.is_err());
    /// assert_eq!(service.usage().balance(Some(new_key)).await?.org_id, rotated.org_id);
    ///
    /// // The response was lost: the same request gets it again.
    /// let again = keys.rotate_current(Some(&old_key), &request, Some(&rotation)).await?;
    /// assert_eq!(again.api_key.key().hash(), new_key.hash());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key; [`Error::KeyNotAllowed`] when it may not manage keys;
    /// [`Error::ValidationFailed`] when the idempotency key is too short; or
    /// when the store fails. After [`Error::OutcomeUnknown`], retry with the same idempotency key.
    pub async fn rotate_current(
        self,
        caller: impl Into<Caller<'_>>,
        request: &RotateKeyRequest,
        rotation: Option<&IdempotencyKey>,
    ) -> Result<VerifyResponse, Error> {
        let caller = caller.into();
        let old = caller.secret().ok_or(Error::Unauthorized)?;
        let new = match rotation.and_then(|rotation| caller.successor(rotation)) {
            Some(Ok(successor)) => successor,
            Some(Err(problem)) => {
                self.access.authenticate(caller).await?;
                return Err(Error::field("Idempotency-Key", problem));
            }
            None => ApiKey::generate(&SystemRandomness),
        };
        let old_until = end_of_grace(request.grace_seconds, self.access.now())?;
        let replaced = match self.access.holder_as(caller, Some(Scope::Manage), Right::Own).await {
            Ok(holder) if old_until.is_some() => Some(self.rotate_with_grace(holder, new.hash(), old_until).await?),
            Ok(_) => self.access.store.replace_live_key(&old, new.hash(), self.access.now()).await?,
            Err(Error::KeyRefused(KeyFault::NotLive)) => None,
            Err(error) => return Err(error),
        };
        let account = match replaced {
            Some(account) => account,
            // Perhaps an earlier attempt replaced it. Only the holder of both inputs can derive this successor.
            None => self.access.store.account_by_key(&new.hash()).await?.ok_or(Error::KeyRefused(KeyFault::NotLive))?,
        };
        Ok(rotated(&account, new))
    }

    async fn rotate_with_grace(
        self,
        holder: KeyHolder,
        secret: KeyHash,
        old_until: Option<Timestamp>,
    ) -> Result<Account, Error> {
        let id = holder.key().ok_or(Error::KeyRefused(KeyFault::NotLive))?.id.clone();
        let again = self.access.store.key_holder(&secret).await?;
        if again.is_some_and(|again| again.key().is_some_and(|key| key.id == id)) {
            // The repeated request.
            return Ok(holder.account);
        }
        let change = KeyChange::Rotate { secret, old_until };
        changed_key(
            self.access.store.change_key(&holder.account.id, &id, Some(&id), change, self.access.now()).await?,
        )?;
        Ok(holder.account)
    }
}

/// The response to a recovery: the account's new key, and which others still work.
pub(in crate::service) async fn recovered(access: &Access, account: &Account, key: ApiKey) -> VerifyResponse {
    let remaining = other_live_keys(access, account).await;
    if let Err(error) = &remaining {
        // The new key must be returned anyway.
        tracing::warn!(%error, account = %account.id, "cannot list the other keys of a recovered account");
    }
    VerifyResponse { remaining_keys: remaining.ok(), ..rotated(account, key) }
}

async fn other_live_keys(access: &Access, account: &Account) -> Result<Vec<RemainingKeyDocument>, StoreError> {
    let (now, mut after, mut others) = (access.now(), None, Vec::new());
    let works = |status: &KeyStatus| {
        let expired = status.key.terms.expires_at.is_some_and(|at| at <= now);
        !status.key.number.is_first() && status.key.is_live() && status.parents_are_live && !expired
    };
    loop {
        let page = access.store.keys(&account.id, after.as_ref(), KEYS_PER_READ, now.day()).await?;
        others.extend(page.items.iter().filter(|status| works(status)).map(|status| RemainingKeyDocument {
            id: status.key.id.to_string(),
            name: status.key.terms.name.to_string(),
            scopes: status.key.terms.scopes,
            created_at: status.key.created_at,
        }));
        after = page.next;
        if after.is_none() {
            return Ok(others);
        }
    }
}

/// The response that has an account's new key.
fn rotated(account: &Account, key: ApiKey) -> VerifyResponse {
    VerifyResponse {
        status: "ok",
        rotated: true,
        api_key: key.into(),
        org_id: account.id.to_string(),
        credit_balance: account.totals.balance,
        rate_limits: account.limits,
        remaining_keys: None,
    }
}
