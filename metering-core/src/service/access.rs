//! The sender of a request: the account and the keys behind a secret, and whether they may be used for it.

use std::sync::Arc;

use tracing::{Instrument, info_span};

use crate::access::account::{Account, AccountId};
use crate::access::credentials::Caller;
use crate::access::issued_key::{Key, KeyHolder};
use crate::access::key::KeyFault;
use crate::access::key_use::KeyRefusal;
use crate::access::role::Right;
use crate::access::scope::Scope;
use crate::clock::{Clock, Timestamp};
use crate::error::Error;
use crate::store::Store;
use crate::trace;
use crate::usage::KeyLabels;

/// The accounts and keys behind the secrets of callers, from [`Service::access`](crate::Service::access).
#[derive(Debug, Clone)]
pub struct Access {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<dyn Clock>,
}

impl Access {
    /// The account that owns a key.
    ///
    /// ```
    /// use metering_core::wire::ErrorCode;
    /// use metering_core::{ApiKey, MemoryStore, Service, SystemRandomness};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let access = service.access();
    /// assert_eq!(access.authenticate(Some(&key)).await?.id, account.id);
    ///
    /// let unknown = ApiKey::generate(&SystemRandomness);
    /// let Err(error) = access.authenticate(Some(&unknown)).await else { return Err("nobody has this key".into()) };
    /// assert_eq!(error.code(), ErrorCode::Unauthorized);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key; [`Error::KeyNotAllowed`] when it has expired, or may not be used
    /// from there.
    pub async fn authenticate(&self, caller: impl Into<Caller<'_>>) -> Result<Account, Error> {
        Ok(self.key_holder(caller).await?.account)
    }

    /// Who holds a key: its account, and the key with those that it is below.
    ///
    /// # Errors
    /// See [`Access::authenticate`].
    pub async fn key_holder(&self, caller: impl Into<Caller<'_>>) -> Result<KeyHolder, Error> {
        let span = info_span!(target: trace::TARGET, "authenticate");
        self.holder(caller.into(), None).instrument(span).await
    }

    /// The account that owns a key which has this scope.
    ///
    /// # Errors
    /// As [`Access::authenticate`]; [`Error::KeyNotAllowed`] when the key lacks the scope.
    pub async fn authorize(&self, caller: impl Into<Caller<'_>>, scope: Scope) -> Result<Account, Error> {
        Ok(self.holder(caller.into(), Some(scope)).await?.account)
    }

    /// The account that owns a key which has one of these scopes.
    ///
    /// # Errors
    /// See [`Access::authorize`].
    pub async fn authorize_any(&self, caller: impl Into<Caller<'_>>, scopes: &[Scope]) -> Result<Account, Error> {
        Ok(self.holder_with_any(caller.into(), scopes).await?.account)
    }

    /// The caller's key, if it has this scope.
    ///
    /// # Errors
    /// See [`Access::authorize`].
    pub async fn current_key(&self, caller: impl Into<Caller<'_>>, scope: Scope) -> Result<Key, Error> {
        let holder = self.holder(caller.into(), Some(scope)).await?;
        holder.key().cloned().ok_or(Error::KeyRefused(KeyFault::NotLive))
    }

    /// The caller's key, if it is the account's first one. A member's session counts as that key if the role has this
    /// right.
    ///
    /// # Errors
    /// As [`Access::authorize`] for [`Scope::Manage`]; [`Error::KeyNotAllowed`] for another key or role.
    pub async fn first_key(&self, caller: impl Into<Caller<'_>>, right: Right) -> Result<Key, Error> {
        let holder = self.first_holder(caller.into(), right).await?;
        holder.key().cloned().ok_or(Error::KeyRefused(KeyFault::NotLive))
    }

    /// The holder of the first key of an account.
    pub(super) async fn first_holder(&self, caller: Caller<'_>, right: Right) -> Result<KeyHolder, Error> {
        let holder = self.holder_as(caller, Some(Scope::Manage), right).await?;
        let is_first = holder.key().is_some_and(|key| key.number.is_first());
        if is_first { Ok(holder) } else { Err(Error::KeyNotAllowed(KeyRefusal::NotFirst)) }
    }

    /// The holder of a key that may be used for this, now and from this address.
    pub(super) async fn holder(&self, caller: Caller<'_>, scope: Option<Scope>) -> Result<KeyHolder, Error> {
        self.holder_as(caller, scope, scope.map_or(Right::Read, Right::of)).await
    }

    /// Like [`Access::holder`], where a member needs another right than the scope's.
    pub(super) async fn holder_as(
        &self,
        caller: Caller<'_>,
        scope: Option<Scope>,
        right: Right,
    ) -> Result<KeyHolder, Error> {
        let holder = self.holder_of(caller).await?;
        holder.check(scope, caller.address, self.now())?;
        caller.check_role(right)?;
        Ok(holder)
    }

    /// The holder of a key that has one of these scopes.
    pub(super) async fn holder_with_any(&self, caller: Caller<'_>, scopes: &[Scope]) -> Result<KeyHolder, Error> {
        let holder = self.holder_of(caller).await?;
        let now = self.now();
        let mut refused = holder.check(None, caller.address, now);
        for scope in scopes {
            refused = holder.check(Some(*scope), caller.address, now);
            refused = refused.and_then(|()| caller.check_role(Right::of(*scope)));
            if refused.is_ok() {
                break;
            }
        }
        refused?;
        Ok(holder)
    }

    /// Like [`Access::authenticate`], for a trusted service that checks its own caller's key.
    pub(super) async fn authenticate_anywhere(&self, caller: impl Into<Caller<'_>>) -> Result<Account, Error> {
        let holder = self.holder_of(caller.into()).await?;
        let is_live = holder.is_live(self.now());
        if is_live { Ok(holder.account) } else { Err(Error::KeyRefused(KeyFault::NotLive)) }
    }

    /// Replaces `error` with the authentication error for a caller without a live key: that error always comes first.
    pub(super) async fn after_authentication(&self, caller: impl Into<Caller<'_>>, error: Error) -> Error {
        match self.authenticate(caller).await {
            Ok(_) => error,
            Err(refused) => refused,
        }
    }

    /// The names of all keys that an account has or had.
    pub(super) async fn key_labels(&self, account: &AccountId) -> Result<KeyLabels, Error> {
        Ok(self.store.key_labels(account).await?.into_iter().collect())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn holder_of(&self, caller: Caller<'_>) -> Result<KeyHolder, Error> {
        let secret = caller.secret().ok_or(Error::Unauthorized)?;
        let holder = self.store.key_holder(&secret).await?;
        // A rotation ends sessions, also one with a grace period: that is for programs that still have the key.
        let ended = |holder: &KeyHolder| caller.key.is_none() && holder.secret_expires_at.is_some();
        holder.filter(|holder| !ended(holder)).ok_or(Error::KeyRefused(KeyFault::NotLive))
    }
}
