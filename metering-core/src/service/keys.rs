//! Keys of an account, made and changed by the holders of its keys.
//!
//! A key reads and changes itself and its child keys, if it has the scope for it. The store's transaction decides the
//! terms that it may give to others, by [`decision`](crate::backend::decision).

mod rotation;
mod terms;

pub(super) use rotation::recovered;
pub use terms::{TermsReader, end_of_grace, wider_terms};

use crate::access::account::AccountId;
use crate::access::credentials::Caller;
use crate::access::issued_key::{Key, KeyHolder};
use crate::access::key::{ApiKey, KeyFault, KeyHash};
use crate::access::key_id::KeyId;
use crate::access::key_terms::KeyTerms;
use crate::access::key_use::KeyRefusal;
use crate::access::member::Member;
use crate::access::role::Right;
use crate::access::scope::{Scope, Scopes};
use crate::access::succession::derived_key;
use crate::catalogue::Catalogue;
use crate::charging::delivery::{IdempotencyKey, Repetition};
use crate::error::{Error, KeyConflict};
use crate::random::SystemRandomness;
use crate::service::Access;
use crate::service::fields::{known_cursor, within};
use crate::service::metering::Service;
use crate::store::{Cursor, KeyChange, KeyChanged, KeyCreated, NewKey};
use crate::wire::{
    ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, IssuedKeyResponse, KeyDocument, KeyResponse, KeysDocument,
    LeakedKeyRequest, LeakedKeyResponse, RotateKeyRequest,
};

/// The most keys in one response.
const MAX_ENTRIES: u32 = 100;
/// Means the caller's own key, in place of an id.
const CURRENT: &str = "current";

/// Separate the secrets of keys that were made or rotated with an idempotency key from all others.
const CHILD: &[u8] = b"metering: the secret of a new key";
const ROTATED: &[u8] = b"metering: the new secret of a key";

/// The keys of accounts, from [`Service::keys`].
#[derive(Debug, Clone, Copy)]
pub struct Keys<'s> {
    access: &'s Access,
    catalogue: &'s Catalogue,
    max_per_account: u32,
}

impl Service {
    /// The keys of accounts.
    #[must_use]
    pub fn keys(&self) -> Keys<'_> {
        let max_per_account = self.config.max_keys_per_account;
        Keys { access: &self.access, catalogue: self.catalogue(), max_per_account }
    }
}

impl<'s> Keys<'s> {
    /// Makes a child of the caller's key.
    ///
    /// With an idempotency key of at least 32 characters, the same request gets the same key again, for as long as the
    /// caller's own secret stays the same.
    ///
    /// ```
    /// use metering_core::{Charge, Error, MemoryStore, Service};
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
    /// # let (account, key) = service.open_account("my-agent", "2".parse()?).await?;
    /// let request = serde_json::from_str(r#"{"name": "sub-agent", "limit": "0.5"}"#)?;
    /// let made = service.keys().create(Some(&key), &request, None).await?;
    /// let charge = Charge::new(made.key.key(), "0.5".parse()?, "GET", "/price");
    /// assert_eq!(service.charge(charge.clone()).await?.balance.to_string(), "1.5");
    /// assert!(matches!(service.charge(charge).await, Err(Error::Refused(_))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not manage keys,
    /// [`Error::ValidationFailed`], also for terms that are wider than its own, [`Error::KeyConflict`], or when the
    /// store fails.
    pub async fn create(
        self,
        caller: impl Into<Caller<'_>>,
        request: &CreateKeyRequest,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<IssuedKeyResponse, Error> {
        let caller = caller.into();
        let (holder, parent) = self.manager(caller).await?;
        let terms = self.terms_below(&parent, request)?;
        may_give(caller.member(), terms.scopes)?;
        // Another request with the same idempotency key gets another key.
        let content = serde_json::to_vec(request).map_err(|_| Error::Internal)?;
        let secret = new_secret(CHILD, caller, &content, idempotency_key)?;
        let key = self.key_below(&parent, terms, &secret).await?;
        if idempotency_key.is_some() && !self.is_secret_of(&secret, &key).await? {
            // The key was made by the same request before, and has another secret by now.
            return Err(Error::Repeated(Repetition::UsedUp));
        }
        let data = self.document(&holder.account.id, &key.id).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }

    /// Makes a child of a key that its caller may manage keys with, such as one whose wallet signed in.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::KeyConflict`], or when the store fails.
    pub async fn create_below(self, parent: &Key, request: &CreateKeyRequest) -> Result<IssuedKeyResponse, Error> {
        let terms = self.terms_below(parent, request)?;
        let secret = ApiKey::generate(&SystemRandomness);
        let key = self.key_below(parent, terms, &secret).await?;
        let data = self.document(&parent.account, &key.id).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }

    /// The terms that a request sets for a child key of this one.
    pub(in crate::service) fn terms_below(self, parent: &Key, request: &CreateKeyRequest) -> Result<KeyTerms, Error> {
        let mut terms = self.terms_reader().terms(request)?;
        if request.scopes.is_none() {
            // The default scopes that it may pass on.
            let own = terms.scopes.iter().filter(|scope| parent.terms.scopes.has(*scope));
            terms.scopes = Scopes::of(own).unwrap_or(terms.scopes);
        }
        Ok(terms)
    }

    async fn key_below(self, parent: &Key, terms: KeyTerms, secret: &ApiKey) -> Result<Key, Error> {
        created(self.access.store.create_key(self.new_key(parent, terms, secret.hash())).await?)
    }

    /// The key to create below another.
    pub(in crate::service) fn new_key(self, parent: &Key, terms: KeyTerms, secret: KeyHash) -> NewKey {
        let (account, parent) = (parent.account.clone(), Some(parent.id.clone()));
        let (max_keys, created_at) = (self.max_per_account, self.access.now());
        NewKey { account, parent, secret, terms, max_keys, created_at }
    }

    async fn is_secret_of(self, secret: &ApiKey, key: &Key) -> Result<bool, Error> {
        let holder = self.access.store.key_holder(&secret.hash()).await?;
        Ok(holder.is_some_and(|holder| holder.key().is_some_and(|own| own.id == key.id)))
    }

    /// The caller's key and its child keys, oldest first: at most `limit` (1 to 100) after `after`.
    ///
    /// # Errors
    /// As [`Keys::create`].
    pub async fn list(
        self,
        caller: impl Into<Caller<'_>>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<KeysDocument, Error> {
        let holder = self.access.holder_as(caller.into(), Some(Scope::Manage), Right::Read).await?;
        let own = own(&holder)?;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let (id, now) = (&holder.account.id, self.access.now());
        let labels = self.access.key_labels(id).await?;
        let mut after = after.map(Cursor::new);
        loop {
            let page = known_cursor(self.access.store.keys(id, after.as_ref(), limit, now.day()).await)?;
            let below = page.items.into_iter().filter(|status| labels.is_at_or_below(status.key.number, own.number));
            let data: Vec<_> = below.map(|status| KeyDocument::labelled(status, &labels, now)).collect();
            if !data.is_empty() || page.next.is_none() {
                return Ok(KeysDocument { data, next: page.next.map(|next| next.as_str().to_owned()) });
            }
            // The caller may read none of these. A page without keys would look like the last one.
            after = page.next;
        }
    }

    /// One key: the caller's own, or a child of it. The id `current` represents the caller's own, which needs no scope.
    ///
    /// # Errors
    /// As [`Keys::create`], and [`Error::NoSuchKey`].
    pub async fn get(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<KeyResponse, Error> {
        let caller = caller.into();
        let scope = (id != CURRENT).then_some(Scope::Manage);
        let holder = self.access.holder_as(caller, scope, Right::Read).await?;
        let own = own(&holder)?;
        let key = self.find_key(&holder.account.id, own, id).await?;
        let document = self.document(&holder.account.id, &key).await?;
        let secret_expires_at = holder.secret_expires_at.filter(|_| id == CURRENT);
        Ok(KeyResponse { data: KeyDocument { secret_expires_at, ..document } })
    }

    /// Changes a key.
    ///
    /// # Errors
    /// As [`Keys::create`], and [`Error::NoSuchKey`].
    pub async fn change(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &ChangeKeyRequest,
    ) -> Result<KeyResponse, Error> {
        let caller = caller.into();
        let change = self.terms_reader().change(request)?;
        if let Some(networks) = change.networks.as_ref().filter(|networks| !networks.allow(caller.address))
            && self.is_own(caller, id).await?
        {
            let from = caller.address.map_or_else(|| "which is not known".to_owned(), |address| address.to_string());
            let problem = format!("must have the address that you call from, {from}, or you lock yourself out");
            tracing::debug!(%networks, "a key would lock itself out");
            return Err(Error::field("networks", problem));
        }
        let change = KeyChange::Terms(Box::new(change));
        let (account, key) = self.apply(caller, id, change).await?;
        Ok(KeyResponse { data: self.document(&account, &key.id).await? })
    }

    async fn is_own(self, caller: Caller<'_>, id: &str) -> Result<bool, Error> {
        let (_, own) = self.manager(caller).await?;
        Ok(id == CURRENT || id == own.id.as_str())
    }

    /// Deletes a key permanently, and its child keys.
    ///
    /// # Errors
    /// As [`Keys::create`], and [`Error::NoSuchKey`].
    pub async fn delete(self, caller: impl Into<Caller<'_>>, id: &str) -> Result<DeletedKeyResponse, Error> {
        self.apply(caller.into(), id, KeyChange::Revoke).await?;
        Ok(DeletedKeyResponse { deleted: true })
    }

    /// Replaces the secret of a key: the caller's own, or a child of it. The old one may keep working for a grace
    /// period.
    ///
    /// With an idempotency key of at least 32 characters, the same request gets the same secret again.
    ///
    /// # Errors
    /// As [`Keys::create`], and [`Error::NoSuchKey`].
    pub async fn rotate(
        self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &RotateKeyRequest,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<IssuedKeyResponse, Error> {
        let caller = caller.into();
        let old_until = end_of_grace(request.grace_seconds, self.access.now())?;
        let secret = new_secret(ROTATED, caller, id.as_bytes(), idempotency_key)?;
        if let (Some(_), Some(again)) = (idempotency_key, self.rotated_before(&secret.hash()).await?) {
            return Ok(IssuedKeyResponse { key: secret.into(), data: again });
        }
        let change = KeyChange::Rotate { secret: secret.hash(), old_until };
        let (account, key) = self.apply(caller, id, change).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data: self.document(&account, &key.id).await? })
    }

    /// Disables a leaked key. Anyone who has the key may do this; no other credentials are needed.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] when the text is not a key, or when the store fails.
    pub async fn report_leaked(self, request: &LeakedKeyRequest) -> Result<LeakedKeyResponse, Error> {
        let text = request.key.as_deref().ok_or_else(|| Error::field("key", "is required"))?;
        let key = ApiKey::parse(text.trim()).map_err(|problem| Error::field("key", problem))?;
        let found = self.access.store.report_leaked(&key.hash(), self.access.now()).await?;
        if let Some(key) = &found {
            tracing::warn!(key = %key.id, account = %key.account, "a key was reported as leaked, and is disabled");
        }
        Ok(LeakedKeyResponse { disabled: found.is_some() })
    }

    async fn manager(self, caller: Caller<'_>) -> Result<(KeyHolder, Key), Error> {
        let holder = self.access.holder(caller, Some(Scope::Manage)).await?;
        let own = own(&holder)?.clone();
        Ok((holder, own))
    }

    /// Changes a key on behalf of the caller's.
    async fn apply(self, caller: Caller<'_>, id: &str, change: KeyChange) -> Result<(AccountId, Key), Error> {
        let (holder, own) = self.manager(caller).await?;
        let account = holder.account.id;
        let id = if id == CURRENT { own.id.clone() } else { id.parse().map_err(|_| Error::NoSuchKey)? };
        if let Some(member) = caller.member() {
            self.check_member(member, &account, &id, &change).await?;
        }
        let changed = self.access.store.change_key(&account, &id, Some(&own.id), change, self.access.now()).await?;
        Ok((account, changed_key(changed)?))
    }

    /// A member changes the first key only as an owner, and other keys only if the role could have made them.
    async fn check_member(
        self,
        member: &Member,
        account: &AccountId,
        id: &KeyId,
        change: &KeyChange,
    ) -> Result<(), Error> {
        let found = self.access.store.key(account, id, self.access.now().day()).await?.ok_or(Error::NoSuchKey)?;
        if found.key.number.is_first() && !member.role.may(Right::Own) {
            return Err(Error::KeyNotAllowed(KeyRefusal::Role { role: member.role }));
        }
        may_give(Some(member), found.key.terms.scopes)?;
        match change {
            KeyChange::Terms(terms) => terms.scopes.map_or(Ok(()), |scopes| may_give(Some(member), scopes)),
            KeyChange::Rotate { .. } | KeyChange::Revoke => Ok(()),
        }
    }

    /// The id of a key that is the caller's own or a child of it.
    async fn find_key(self, account: &AccountId, own: &Key, id: &str) -> Result<KeyId, Error> {
        if id == CURRENT {
            return Ok(own.id.clone());
        }
        let id: KeyId = id.parse().map_err(|_| Error::NoSuchKey)?;
        let found = self.access.store.key(account, &id, self.access.now().day()).await?.ok_or(Error::NoSuchKey)?;
        let labels = self.access.key_labels(account).await?;
        let is_visible = found.key.revoked_at.is_none() && labels.is_at_or_below(found.key.number, own.number);
        if is_visible { Ok(id) } else { Err(Error::NoSuchKey) }
    }

    async fn document(self, account: &AccountId, id: &KeyId) -> Result<KeyDocument, Error> {
        let now = self.access.now();
        let status = self.access.store.key(account, id, now.day()).await?.ok_or(Error::NoSuchKey)?;
        let labels = self.access.key_labels(account).await?;
        Ok(KeyDocument::labelled(status, &labels, now))
    }

    /// The key whose secret is derived from a key and an idempotency key.
    async fn rotated_before(self, secret: &KeyHash) -> Result<Option<KeyDocument>, Error> {
        let holder = self.access.store.key_holder(secret).await?;
        let Some(holder) = holder.filter(|holder| holder.is_live(self.access.now())) else { return Ok(None) };
        Ok(Some(self.document(&holder.account.id, &own(&holder)?.id).await?))
    }

    fn terms_reader(self) -> TermsReader<'s> {
        TermsReader { catalogue: Some(self.catalogue), now: self.access.now() }
    }
}

fn new_secret(
    purpose: &[u8],
    caller: Caller<'_>,
    target: &[u8],
    idempotency_key: Option<&IdempotencyKey>,
) -> Result<ApiKey, Error> {
    let Some(idempotency_key) = idempotency_key else {
        return Ok(ApiKey::generate(&SystemRandomness));
    };
    let proof = caller.proof().ok_or(Error::Unauthorized)?;
    let purpose = [purpose, b" ", target].concat();
    let derived = derived_key(&purpose, proof, idempotency_key);
    derived.map_err(|problem| Error::field("Idempotency-Key", problem))
}

/// Whether a member may give these scopes to a key. Keys are checked by the store.
pub(in crate::service) fn may_give(member: Option<&Member>, scopes: Scopes) -> Result<(), Error> {
    match member {
        Some(member) if !member.role.may_give(scopes) => {
            Err(Error::KeyNotAllowed(KeyRefusal::Role { role: member.role }))
        }
        _ => Ok(()),
    }
}

fn own(holder: &KeyHolder) -> Result<&Key, Error> {
    holder.key().ok_or(Error::KeyRefused(KeyFault::NotLive))
}

/// The key that was created, or why none was.
pub(in crate::service) fn created(outcome: KeyCreated) -> Result<Key, Error> {
    match outcome {
        KeyCreated::Key(key) => Ok(key),
        KeyCreated::NoSuchAccount | KeyCreated::NoSuchParent => Err(Error::KeyRefused(KeyFault::NotLive)),
        KeyCreated::SecretUsed => Err(Error::Repeated(Repetition::UsedUp)),
        KeyCreated::TooDeep => Err(Error::KeyConflict(KeyConflict::TooDeep)),
        KeyCreated::TooMany => Err(Error::KeyConflict(KeyConflict::TooMany)),
        KeyCreated::Wider(wider) => Err(wider_terms(wider)),
    }
}

/// The changed key, or why it was not changed.
fn changed_key(outcome: KeyChanged) -> Result<Key, Error> {
    match outcome {
        KeyChanged::Key(key) => Ok(key),
        KeyChanged::NoSuchKey => Err(Error::NoSuchKey),
        KeyChanged::SecretUsed => Err(Error::Repeated(Repetition::UsedUp)),
        KeyChanged::FirstKey => Err(Error::KeyConflict(KeyConflict::FirstKey)),
        KeyChanged::Leaked => Err(Error::KeyConflict(KeyConflict::Leaked)),
        KeyChanged::NoLimit => Err(Error::field("limit_reset", "needs a limit")),
        KeyChanged::Wider(wider) => Err(wider_terms(wider)),
    }
}
