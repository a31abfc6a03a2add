//! Keys of an account, made and changed by the holders of its keys.
//!
//! A key sees and changes itself and the keys below it, if it has the scope for that. What it may give to others is
//! decided in the store's transaction, by [`decision`](crate::store::backend::decision).

use crate::access::account::AccountId;
use crate::access::budget::Budget;
use crate::access::credentials::Caller;
use crate::access::issued_key::{Key, KeyHolder, KeyStatus};
use crate::access::key::{ApiKey, KeyFault, KeyHash};
use crate::access::key_id::{KeyId, KeyNumber};
use crate::access::key_terms::{KeyTerms, WiderTerms};
use crate::access::network::Networks;
use crate::access::route_pattern::RoutePatterns;
use crate::access::scope::{Scope, Scopes};
use crate::access::succession::derived_key;
use crate::charging::delivery::{IdempotencyKey, Repetition};
use crate::clock::Timestamp;
use crate::error::{Error, KeyConflict};
use crate::service::Service;
use crate::service::fields::Fields;
use crate::service::reports::within;
use crate::store::{Cursor, KeyChange, KeyChanged, KeyCreated, NewKey, StoreError, TermsChange};
use crate::usage::KeyLabels;
use crate::wire::{
    ChangeKeyRequest, CreateKeyRequest, DeletedKeyResponse, IssuedKeyResponse, KeyDocument, KeyResponse, KeysDocument,
    LeakedKeyRequest, LeakedKeyResponse, RotateKeyRequest,
};

/// The most keys in one response.
const MAX_ENTRIES: u32 = 100;
/// The longest time that an old secret works after a rotation: a week.
const MAX_GRACE_SECONDS: u32 = 7 * 24 * 60 * 60;
/// Stands for the caller's own key, in place of an id.
const CURRENT: &str = "current";

/// Separate the secrets of keys that were made or rotated with an idempotency key from all others.
const CHILD: &[u8] = b"metering: the secret of a new key";
const ROTATED: &[u8] = b"metering: the new secret of a key";

impl Service {
    /// Makes a key below the caller's.
    ///
    /// With an idempotency key of at least 32 characters, the same request gets the same key again.
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
    /// let made = service.create_key(Some(&key), &request, None).await?;
    /// let charge = Charge::new(made.key.key(), "0.5".parse()?, "GET", "/price");
    /// assert_eq!(service.charge(charge.clone()).await?.balance.to_string(), "1.5");
    /// assert!(matches!(service.charge(charge).await, Err(Error::KeyBudget(_))));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Unauthorized`] without a live key, [`Error::KeyNotAllowed`] when it may not manage keys,
    /// [`Error::ValidationFailed`], also for terms that are wider than its own, [`Error::KeyConflict`], or when the
    /// store fails.
    pub async fn create_key(
        &self,
        caller: impl Into<Caller<'_>>,
        request: &CreateKeyRequest,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<IssuedKeyResponse, Error> {
        let caller = caller.into();
        let (holder, parent) = self.manager(caller).await?;
        let terms = self.terms(request)?;
        let secret = self.new_secret(CHILD, caller.key, &[], idempotency_key)?;
        let new = NewKey {
            account: holder.account.id.clone(),
            parent: Some(parent.id.clone()),
            secret: secret.hash(),
            terms,
            max_keys: self.config.max_keys_per_account,
            created_at: self.clock.now(),
        };
        let key = created(self.store.create_key(new).await?)?;
        let data = self.document(&holder.account.id, &key.id).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data })
    }

    /// The caller's key and the keys below it, oldest first: at most `limit` (1 to 100) after `after`.
    ///
    /// # Errors
    /// As [`Service::create_key`].
    pub async fn keys(
        &self,
        caller: impl Into<Caller<'_>>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<KeysDocument, Error> {
        let (holder, own) = self.manager(caller.into()).await?;
        let limit = within("limit", limit, MAX_ENTRIES)?;
        let (id, now) = (&holder.account.id, self.clock.now());
        let after = after.map(Cursor::new);
        let page = match self.store.keys(id, after.as_ref(), limit, now.day()).await {
            Err(StoreError::UnknownCursor) => return Err(Error::field("after", "is not a value of next")),
            page => page?,
        };
        let labels = self.key_labels(id).await?;
        let below = page.items.into_iter().filter(|status| labels.is_at_or_below(status.key.number, own.number));
        let data = below.map(|status| document(status, &labels, now)).collect();
        Ok(KeysDocument { data, next: page.next.map(|next| next.as_str().to_owned()) })
    }

    /// One key: the caller's own, or one below it. The id `current` stands for the caller's own, which needs no scope.
    ///
    /// # Errors
    /// As [`Service::create_key`], and [`Error::NoSuchKey`].
    pub async fn key(&self, caller: impl Into<Caller<'_>>, id: &str) -> Result<KeyResponse, Error> {
        let caller = caller.into();
        let scope = (id != CURRENT).then_some(Scope::Manage);
        let holder = self.holder(caller, scope).await?;
        let own = own(&holder)?;
        let key = self.find_key(&holder.account.id, own, id).await?;
        Ok(KeyResponse { data: self.document(&holder.account.id, &key).await? })
    }

    /// Changes a key.
    ///
    /// # Errors
    /// As [`Service::create_key`], and [`Error::NoSuchKey`].
    pub async fn change_key(
        &self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &ChangeKeyRequest,
    ) -> Result<KeyResponse, Error> {
        let change = KeyChange::Terms(Box::new(self.terms_change(request)?));
        let (account, key) = self.change(caller.into(), id, |_| Ok(change)).await?;
        Ok(KeyResponse { data: self.document(&account, &key.id).await? })
    }

    /// Deletes a key for good, and stops the keys below it.
    ///
    /// # Errors
    /// As [`Service::create_key`], and [`Error::NoSuchKey`].
    pub async fn delete_key(&self, caller: impl Into<Caller<'_>>, id: &str) -> Result<DeletedKeyResponse, Error> {
        self.change(caller.into(), id, |_| Ok(KeyChange::Revoke)).await?;
        Ok(DeletedKeyResponse { deleted: true })
    }

    /// Replaces the secret of a key: the caller's own, or one below it. The old one may go on working for a while.
    ///
    /// With an idempotency key of at least 32 characters, the same request gets the same secret again.
    ///
    /// # Errors
    /// As [`Service::create_key`], and [`Error::NoSuchKey`].
    pub async fn rotate_key_by_id(
        &self,
        caller: impl Into<Caller<'_>>,
        id: &str,
        request: &RotateKeyRequest,
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<IssuedKeyResponse, Error> {
        let caller = caller.into();
        let grace = request.grace_seconds.unwrap_or(0);
        if grace > MAX_GRACE_SECONDS {
            return Err(Error::field("grace_seconds", format_args!("must be at most {MAX_GRACE_SECONDS}")));
        }
        let old_until = Some(self.clock.now().saturating_add(std::time::Duration::from_secs(grace.into())));
        let secret = self.new_secret(ROTATED, caller.key, id.as_bytes(), idempotency_key)?;
        if let (Some(_), Some(again)) = (idempotency_key, self.rotated_before(&secret.hash()).await?) {
            return Ok(IssuedKeyResponse { key: secret.into(), data: again });
        }
        let hash = secret.hash();
        let (account, key) = self.change(caller, id, |_| Ok(KeyChange::Rotate { secret: hash, old_until })).await?;
        Ok(IssuedKeyResponse { key: secret.into(), data: self.document(&account, &key.id).await? })
    }

    /// Disables a key that was found where it should not be. Whoever has the key may do this; nothing else is needed.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`] when the text is not a key, or when the store fails.
    pub async fn report_leaked(&self, request: &LeakedKeyRequest) -> Result<LeakedKeyResponse, Error> {
        let text = request.key.as_deref().ok_or_else(|| Error::field("key", "is required"))?;
        let key = ApiKey::parse(text.trim()).map_err(|problem| Error::field("key", problem))?;
        let found = self.store.report_leaked(&key.hash(), self.clock.now()).await?;
        if let Some(key) = &found {
            tracing::warn!(key = %key.id, account = %key.account, "a key was reported as leaked, and is disabled");
        }
        Ok(LeakedKeyResponse { disabled: found.is_some() })
    }

    /// The names of all keys that an account has or had.
    pub(crate) async fn key_labels(&self, account: &AccountId) -> Result<KeyLabels, Error> {
        Ok(self.store.key_labels(account).await?.into_iter().collect())
    }

    async fn manager(&self, caller: Caller<'_>) -> Result<(KeyHolder, Key), Error> {
        let holder = self.holder(caller, Some(Scope::Manage)).await?;
        let own = own(&holder)?.clone();
        Ok((holder, own))
    }

    /// Changes a key on behalf of the caller's.
    async fn change(
        &self,
        caller: Caller<'_>,
        id: &str,
        change: impl FnOnce(&KeyId) -> Result<KeyChange, Error>,
    ) -> Result<(AccountId, Key), Error> {
        let (holder, own) = self.manager(caller).await?;
        let account = holder.account.id;
        let id = if id == CURRENT { own.id.clone() } else { id.parse().map_err(|_| Error::NoSuchKey)? };
        let change = change(&id)?;
        let changed = self.store.change_key(&account, &id, Some(&own.id), change, self.clock.now()).await?;
        Ok((account, changed_key(changed)?))
    }

    /// The id of a key that is the caller's own or below it.
    async fn find_key(&self, account: &AccountId, own: &Key, id: &str) -> Result<KeyId, Error> {
        if id == CURRENT {
            return Ok(own.id.clone());
        }
        let id: KeyId = id.parse().map_err(|_| Error::NoSuchKey)?;
        let found = self.store.key(account, &id, self.clock.now().day()).await?.ok_or(Error::NoSuchKey)?;
        let labels = self.key_labels(account).await?;
        let is_visible = found.key.revoked_at.is_none() && labels.is_at_or_below(found.key.number, own.number);
        if is_visible { Ok(id) } else { Err(Error::NoSuchKey) }
    }

    async fn document(&self, account: &AccountId, id: &KeyId) -> Result<KeyDocument, Error> {
        let now = self.clock.now();
        let status = self.store.key(account, id, now.day()).await?.ok_or(Error::NoSuchKey)?;
        let labels = self.key_labels(account).await?;
        Ok(document(status, &labels, now))
    }

    /// The key that has a secret which only the holder of a key and of an idempotency key can know.
    async fn rotated_before(&self, secret: &KeyHash) -> Result<Option<KeyDocument>, Error> {
        let Some(holder) = self.store.key_holder(secret).await? else { return Ok(None) };
        Ok(Some(self.document(&holder.account.id, &own(&holder)?.id).await?))
    }

    fn new_secret(
        &self,
        purpose: &[u8],
        key: Option<&ApiKey>,
        target: &[u8],
        idempotency_key: Option<&IdempotencyKey>,
    ) -> Result<ApiKey, Error> {
        let Some(idempotency_key) = idempotency_key else {
            return Ok(ApiKey::generate(&*self.payments.randomness));
        };
        let key = key.ok_or(Error::Unauthorized)?;
        let purpose = [purpose, b" ", target].concat();
        let derived = derived_key(&purpose, key.expose(), idempotency_key);
        derived.map_err(|problem| Error::field("Idempotency-Key", problem))
    }

    fn terms(&self, request: &CreateKeyRequest) -> Result<KeyTerms, Error> {
        let mut fields = Fields::default();
        let name = fields.parsed("name", request.name.as_deref());
        let reset = fields.optional("limit_reset", request.limit_reset.as_deref());
        let expires_at = self.expiry(&mut fields, request.expires_at.as_deref());
        let scopes = request.scopes.as_deref().and_then(|scopes| read_scopes(&mut fields, scopes));
        let routes = request.routes.as_deref().and_then(|routes| self.read_routes(&mut fields, routes));
        let networks = request.networks.as_deref().and_then(|networks| read_networks(&mut fields, networks));
        check_limit(&mut fields, request.limit);
        if reset.is_some() && request.limit.is_none() {
            fields.wrong("limit_reset", "needs a limit");
        }
        let Some(name) = name.filter(|_| fields.is_empty()) else { return Err(fields.into_error()) };
        let mut terms = KeyTerms::new(name, scopes.unwrap_or_default());
        terms.routes = routes.unwrap_or_default();
        terms.networks = networks.unwrap_or_default();
        terms.expires_at = expires_at;
        terms.limits.requests_per_minute = request.requests_per_minute.unwrap_or(0);
        terms.limits.requests_per_day = request.requests_per_day.unwrap_or(0);
        terms.max_in_flight = request.max_in_flight.unwrap_or(0);
        terms.budget = request.limit.map(|limit| Budget { limit, reset });
        Ok(terms)
    }

    fn terms_change(&self, request: &ChangeKeyRequest) -> Result<TermsChange, Error> {
        let mut fields = Fields::default();
        let change = TermsChange {
            name: fields.optional("name", request.name.as_deref()),
            scopes: request.scopes.as_deref().and_then(|scopes| read_scopes(&mut fields, scopes)),
            routes: request.routes.as_ref().map(|routes| self.optional_routes(&mut fields, routes.as_deref())),
            networks: request.networks.as_ref().map(|networks| optional_networks(&mut fields, networks.as_deref())),
            expires_at: request.expires_at.as_ref().map(|text| self.expiry(&mut fields, text.as_deref())),
            disabled: request.disabled,
            requests_per_minute: request.requests_per_minute.map(Option::unwrap_or_default),
            requests_per_day: request.requests_per_day.map(Option::unwrap_or_default),
            max_in_flight: request.max_in_flight.map(Option::unwrap_or_default),
            limit: request.limit,
            limit_reset: request.limit_reset.as_ref().map(|text| fields.optional("limit_reset", text.as_deref())),
        };
        check_limit(&mut fields, request.limit.flatten());
        if fields.is_empty() { Ok(change) } else { Err(fields.into_error()) }
    }

    fn expiry(&self, fields: &mut Fields, text: Option<&str>) -> Option<Timestamp> {
        let at: Timestamp = fields.optional("expires_at", text)?;
        if at <= self.clock.now() {
            fields.wrong("expires_at", "must be in the future");
        }
        Some(at)
    }

    /// Patterns that match at least one route each. Without a catalogue, any.
    fn read_routes(&self, fields: &mut Fields, routes: &[String]) -> Option<RoutePatterns> {
        let patterns = RoutePatterns::parse(routes.iter().map(String::as_str));
        let patterns = patterns.map_err(|problem| fields.wrong("routes", problem)).ok()?;
        let known = self.catalogue.routes().iter().filter(|route| route.metered);
        let known = known.map(|route| (&*route.method, &*route.template));
        if known.clone().next().is_some()
            && let Some(unmatched) = patterns.unmatched(known)
        {
            let path = unmatched.split(' ').next_back().unwrap_or_default();
            let nearest = self.catalogue.nearest_template(path);
            let hint = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
            fields.wrong("routes", format_args!("has {unmatched:?}, which matches no metered route{hint}"));
        }
        Some(patterns)
    }
}

fn own(holder: &KeyHolder) -> Result<&Key, Error> {
    holder.key().ok_or(Error::KeyRefused(KeyFault::NotLive))
}

fn document(status: KeyStatus, labels: &KeyLabels, now: Timestamp) -> KeyDocument {
    let parent = status.key.parent.and_then(|parent: KeyNumber| labels.get(parent)).map(|label| label.id.clone());
    KeyDocument::new(status, parent.as_ref(), now)
}

fn read_scopes(fields: &mut Fields, names: &[String]) -> Option<Scopes> {
    // Joined, since none of the names has a space.
    let joined = names.join(" ");
    joined.parse().map_err(|problem: crate::access::ScopesError| fields.wrong("scopes", problem)).ok()
}

fn read_networks(fields: &mut Fields, networks: &[String]) -> Option<Networks> {
    let networks = Networks::parse(networks.iter().map(String::as_str));
    networks.map_err(|problem| fields.wrong("networks", problem)).ok()
}

fn check_limit(fields: &mut Fields, limit: Option<crate::Credits>) {
    if limit.is_some_and(crate::Credits::is_negative) {
        fields.wrong("limit", "must not be negative");
    }
}

/// The key that was created, or why none was.
pub(crate) fn created(outcome: KeyCreated) -> Result<Key, Error> {
    match outcome {
        KeyCreated::Key(key) => Ok(key),
        KeyCreated::NoSuchAccount | KeyCreated::NoSuchParent => Err(Error::KeyRefused(KeyFault::NotLive)),
        KeyCreated::SecretUsed => Err(Error::Repeated(Repetition::UsedUp)),
        KeyCreated::TooDeep => Err(Error::KeyConflict(KeyConflict::TooDeep)),
        KeyCreated::TooMany => Err(Error::KeyConflict(KeyConflict::TooMany)),
        KeyCreated::Wider(wider) => Err(wider_terms(wider)),
    }
}

/// The key as it was changed, or why it was not.
pub(crate) fn changed_key(outcome: KeyChanged) -> Result<Key, Error> {
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

fn wider_terms(wider: WiderTerms) -> Error {
    Error::field(wider.field(), wider)
}
