//! Keys of an account: lists, shows, creates, changes, rotates and deletes them.
//!
//! Operators are above the account's first key: they may do what its holder may, without a limit on how many keys the
//! account has.

use std::collections::BTreeMap;

use metering_core::access::{AccountId, ApiKey, Key, KeyId};
use metering_core::clock::Timestamp;
use metering_core::service::{TermsReader, end_of_grace, wider_terms};
use metering_core::store::{Cursor, FullStore, KeyChange, KeyChanged, KeyCreated, NewKey, StoreError};
use metering_core::usage::KeyLabels;
use metering_core::wire::{ChangeKeyRequest, CreateKeyRequest, KeyDocument, KeysDocument, RotateKeyRequest};
use metering_core::{Error, KeyConflict};

use crate::action::Action;
use crate::administration::{Administration, locked, missing_or_revoked, no_account};
use crate::audited::{Step, Target, json, requested};
use crate::calls::keys::{ChangeKey, CreateKey, DeleteKey, RotateKey};
use crate::error::AdminError;

impl Administration {
    /// The keys of an account that are not deleted, oldest first, at most `limit` after `after`.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails, or `after` is not a cursor of this list.
    pub async fn keys(&self, id: &AccountId, after: Option<&Cursor>, limit: u32) -> Result<KeysDocument, AdminError> {
        let now = self.clock.now();
        let page = self.store.keys(id, after, limit, now.day()).await?;
        let labels = self.key_labels(id).await?;
        let data = page.items.into_iter().map(|status| KeyDocument::labelled(status, &labels, now)).collect();
        Ok(KeysDocument { data, next: page.next.map(|next| next.as_str().to_owned()) })
    }

    /// One key of an account.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], [`AdminError::NotFound`] when the account has no such key or it was deleted, or
    /// when the store fails.
    pub async fn key(&self, id: &AccountId, key: &KeyId) -> Result<KeyDocument, AdminError> {
        document(&*self.store, id, key, self.clock.now()).await
    }

    /// The names of all keys that an account has or had, for reports.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], or when the store fails.
    pub async fn key_labels(&self, id: &AccountId) -> Result<KeyLabels, AdminError> {
        labels(&*self.store, id).await
    }

    /// Creates a child key of the account's first one. The store keeps only a hash of its secret.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use metering_sqlite::SqliteStore;
    /// use metering_admin::{Action, Administration};
    /// use metering_core::operators::Actor;
    /// use metering_core::wire::CreateKeyRequest;
    /// use metering_admin::wire::CreateAccountRequest;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let administration = Administration::new(Arc::new(SqliteStore::in_memory()?));
    /// let action = Action::new(Actor::CommandLine("jo".to_owned()), "Ticket 311")?;
    /// let request = CreateAccountRequest { agent_name: "my-agent".to_owned(), ..CreateAccountRequest::default() };
    /// let (account, _first) = administration.create_account(&action, &request).await?;
    ///
    /// let request = CreateKeyRequest { name: Some("batch".to_owned()), ..CreateKeyRequest::default() };
    /// let (key, _secret) = administration.create_key(&action, &account.id, &request).await?;
    /// let keys = administration.keys(&account.id, None, 10).await?;
    /// assert_eq!((keys.data.len(), &keys.data[1].id), (2, &key.id));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`AdminError::Invalid`], also for terms that allow more than the first key does, [`AdminError::NoSuchAccount`],
    /// [`AdminError::Conflict`] when the account is revoked, or when the store fails.
    pub async fn create_key(
        &self,
        action: &Action,
        id: &AccountId,
        request: &CreateKeyRequest,
    ) -> Result<(KeyDocument, ApiKey), AdminError> {
        let now = self.clock.now();
        let terms = self.terms_reader(now).terms(request).map_err(invalid)?;
        let secret = ApiKey::generate(&*self.randomness);
        let new = NewKey {
            account: id.clone(),
            parent: None,
            secret: secret.hash(),
            terms,
            max_keys: u32::MAX,
            created_at: now,
        };
        let create: Step<NewKey, _, _> = |store, new| {
            Box::pin(async move {
                match store.create_key(new.clone()).await? {
                    KeyCreated::Key(key) => document(store, &key.account, &key.id, new.created_at).await,
                    KeyCreated::NoSuchAccount | KeyCreated::NoSuchParent => {
                        Err(missing_or_revoked(store, &new.account).await)
                    }
                    KeyCreated::SecretUsed => Err(drawn_twice()),
                    KeyCreated::TooDeep => Err(conflict(KeyConflict::TooDeep)),
                    KeyCreated::TooMany => Err(conflict(KeyConflict::TooMany)),
                    KeyCreated::Wider(wider) => Err(invalid(wider_terms(wider))),
                }
            })
        };
        let target = Target::of::<CreateKey>(id, action).asked(requested(request));
        let of_account: Step<NewKey, _, _> =
            |store, new| Box::pin(async move { locked(store, &new.account).await.map(|_| None) });
        Ok((self.audited(target, new, of_account, create, json).await?, secret))
    }

    /// Changes the terms of a key; terms that are not given are left unchanged. Takes effect immediately.
    ///
    /// # Errors
    /// As [`Administration::create_key`], [`AdminError::NotFound`], and [`AdminError::Conflict`] for what the account's
    /// first key must keep, and to enable a key that leaked.
    pub async fn change_key(
        &self,
        action: &Action,
        id: &AccountId,
        key: &KeyId,
        request: &ChangeKeyRequest,
    ) -> Result<KeyDocument, AdminError> {
        let now = self.clock.now();
        let change = self.terms_reader(now).change(request).map_err(invalid)?;
        let target = Target::of::<ChangeKey>(id, action).asked(requested(request));
        self.changed(target, (id, key), KeyChange::Terms(Box::new(change)), now).await
    }

    /// Replaces the secret of a key. The old one stops working, immediately or after the requested grace period.
    ///
    /// # Errors
    /// [`AdminError::Invalid`] for a grace period of more than a week, [`AdminError::NoSuchAccount`],
    /// [`AdminError::NotFound`], [`AdminError::Conflict`] when the account is revoked, or when the store fails.
    pub async fn rotate_key_by_id(
        &self,
        action: &Action,
        id: &AccountId,
        key: &KeyId,
        request: &RotateKeyRequest,
    ) -> Result<(KeyDocument, ApiKey), AdminError> {
        let now = self.clock.now();
        let old_until = end_of_grace(request.grace_seconds, now).map_err(invalid)?;
        let secret = ApiKey::generate(&*self.randomness);
        let rotation = KeyChange::Rotate { secret: secret.hash(), old_until };
        let target = Target::of::<RotateKey>(id, action).asked(requested(request));
        Ok((self.changed(target, (id, key), rotation, now).await?, secret))
    }

    /// Deletes a key permanently, with its child keys. Its usage stays in the reports.
    ///
    /// # Errors
    /// [`AdminError::NoSuchAccount`], [`AdminError::NotFound`], [`AdminError::Conflict`] for the account's first key or
    /// when the account is revoked, or when the store fails.
    pub async fn delete_key(&self, action: &Action, id: &AccountId, key: &KeyId) -> Result<(), AdminError> {
        let delete: Step<Change, _, _> = |store, change| Box::pin(async move { change.make(store).await.map(drop) });
        let change = Change { account: id.clone(), key: key.clone(), change: KeyChange::Revoke, now: self.clock.now() };
        let target = Target::of::<DeleteKey>(id, action);
        self.audited(target, change, |store, change| Box::pin(change.before(store)), delete, |()| None).await
    }

    fn terms_reader(&self, now: Timestamp) -> TermsReader<'_> {
        TermsReader { catalogue: self.catalogue.as_deref(), now }
    }

    /// Changes a key that stays.
    async fn changed(
        &self,
        target: Target<'_>,
        (account, key): (&AccountId, &KeyId),
        change: KeyChange,
        now: Timestamp,
    ) -> Result<KeyDocument, AdminError> {
        let change = Change { account: account.clone(), key: key.clone(), change, now };
        let make: Step<Change, _, _> = |store, change| {
            Box::pin(async move {
                change.make(store).await?;
                change.document(store).await
            })
        };
        self.audited(target, change, |store, change| Box::pin(change.before(store)), make, json).await
    }
}

/// A change of a key.
struct Change {
    account: AccountId,
    key: KeyId,
    change: KeyChange,
    now: Timestamp,
}

impl Change {
    async fn before(&self, store: &dyn FullStore) -> Result<Option<String>, AdminError> {
        locked(store, &self.account).await?;
        Ok(json(&self.document(store).await?))
    }

    async fn make(&self, store: &dyn FullStore) -> Result<Key, AdminError> {
        let Self { account, key, change, now } = self;
        match store.change_key(account, key, None, change.clone(), *now).await? {
            KeyChanged::Key(key) => Ok(key),
            KeyChanged::NoSuchKey => match locked(store, account).await?.revoked_at {
                Some(_) => Err(missing_or_revoked(store, account).await),
                None => Err(no_key(account, key)),
            },
            KeyChanged::SecretUsed => Err(drawn_twice()),
            KeyChanged::FirstKey => Err(conflict(KeyConflict::FirstKey)),
            KeyChanged::Leaked => Err(conflict(KeyConflict::Leaked)),
            KeyChanged::NoLimit => Err(invalid(Error::field("limit_reset", "needs a limit"))),
            KeyChanged::Wider(wider) => Err(invalid(wider_terms(wider))),
        }
    }

    async fn document(&self, store: &dyn FullStore) -> Result<KeyDocument, AdminError> {
        document(store, &self.account, &self.key, self.now).await
    }
}

async fn labels(store: &dyn FullStore, id: &AccountId) -> Result<KeyLabels, AdminError> {
    let labels = store.key_labels(id).await?;
    // Every account has its first key.
    if labels.is_empty() { Err(no_account(id)) } else { Ok(labels.into_iter().collect()) }
}

async fn document(
    store: &dyn FullStore,
    id: &AccountId,
    key: &KeyId,
    now: Timestamp,
) -> Result<KeyDocument, AdminError> {
    let (labels, status) = (labels(store, id).await?, store.key(id, key, now.day()).await?);
    let status = status.filter(|status| status.key.revoked_at.is_none()).ok_or_else(|| no_key(id, key))?;
    Ok(KeyDocument::labelled(status, &labels, now))
}

fn no_key(account: &AccountId, key: &KeyId) -> AdminError {
    AdminError::NotFound(format!("account {account} has no key {key}; deleted keys are not shown"))
}

fn conflict(conflict: KeyConflict) -> AdminError {
    AdminError::Conflict(conflict.to_string())
}

/// The error for a request that is not valid.
pub(crate) fn invalid(error: Error) -> AdminError {
    let Error::ValidationFailed(problems) = error else { return AdminError::Invalid(error.to_string()) };
    AdminError::Invalid(sentence(&problems))
}

fn sentence(problems: &BTreeMap<String, String>) -> String {
    let problems: Vec<_> = problems.iter().map(|(field, problem)| format!("{field} {problem}")).collect();
    problems.join("; ")
}

/// A secret of 190 random bits that is in use already: the source of randomness is broken.
fn drawn_twice() -> AdminError {
    AdminError::from(StoreError::Corrupt("a new key is already in use".to_owned()))
}
