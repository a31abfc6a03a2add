//! Fixtures for the contracts about keys: child keys, changes of their terms, and what they may do.

use metering_core::access::{
    AccountId, Budget, BudgetReset, Key, KeyHash, KeyId, KeyNumber, KeyStatus, KeyTerms, Scopes,
};
use metering_core::clock::Timestamp;
use metering_core::store::{KeyChange, KeyChanged, KeyCreated, NewKey, Store, TermsChange};

use super::scene::{Customer, NOON, atoms, new_key};

/// More keys than any contract makes.
pub(super) const MANY: u32 = 1_000;

/// A key that was created, and its secret.
#[derive(Debug, Clone)]
pub(super) struct Issued {
    pub(super) id: KeyId,
    pub(super) number: KeyNumber,
    pub(super) secret: KeyHash,
}

/// Terms of a key that may call and read.
pub(super) fn caller() -> KeyTerms {
    KeyTerms::new("caller".parse().unwrap(), Scopes::default())
}

/// Terms of a key that may do everything.
pub(super) fn manager() -> KeyTerms {
    KeyTerms::new("manager".parse().unwrap(), Scopes::ALL)
}

pub(super) fn budget(limit: i64, reset: Option<BudgetReset>) -> Option<Budget> {
    Some(Budget { limit: atoms(limit), reset })
}

/// The first key of an account.
pub(super) async fn first(store: &dyn Store, customer: &Customer) -> Issued {
    let holder = store.key_holder(&customer.key).await.unwrap().expect("the secret works");
    let key = holder.chain.last().expect("every account has a first key");
    Issued { id: key.id.clone(), number: key.number, secret: customer.key }
}

/// A key to create below `parent`, at noon.
pub(super) fn new_key_of(account: &AccountId, parent: Option<&KeyId>, terms: KeyTerms) -> NewKey {
    let (account, parent, secret) = (account.clone(), parent.cloned(), new_key());
    NewKey { account, parent, secret, terms, max_keys: MANY, created_at: NOON }
}

/// Creates a key and expects success.
pub(super) async fn create_key(store: &dyn Store, new: NewKey) -> Key {
    match store.create_key(new).await.unwrap() {
        KeyCreated::Key(key) => key,
        refusal => panic!("the key was not created: {refusal:?}"),
    }
}

/// Creates a child key of `parent`, or of the first key.
pub(super) async fn issue(store: &dyn Store, account: &AccountId, parent: Option<&Issued>, terms: KeyTerms) -> Issued {
    let new = new_key_of(account, parent.map(|parent| &parent.id), terms);
    let secret = new.secret;
    let key = create_key(store, new).await;
    Issued { id: key.id, number: key.number, secret }
}

/// Changes terms as the operator does, and returns the outcome.
pub(super) async fn try_change(
    store: &dyn Store,
    account: &AccountId,
    id: &KeyId,
    actor: Option<&KeyId>,
    change: TermsChange,
) -> KeyChanged {
    store.change_key(account, id, actor, KeyChange::Terms(Box::new(change)), NOON).await.unwrap()
}

/// Changes terms at `now` as the operator does, and expects success.
pub(super) async fn change_at(
    store: &dyn Store,
    account: &AccountId,
    id: &KeyId,
    change: TermsChange,
    now: Timestamp,
) -> Key {
    changed(store.change_key(account, id, None, KeyChange::Terms(Box::new(change)), now).await.unwrap())
}

/// Changes terms at noon as the operator does, and expects success.
pub(super) async fn change(store: &dyn Store, account: &AccountId, id: &KeyId, change: TermsChange) -> Key {
    change_at(store, account, id, change, NOON).await
}

/// The key after a change that must succeed.
pub(super) fn changed(outcome: KeyChanged) -> Key {
    match outcome {
        KeyChanged::Key(key) => key,
        refusal => panic!("the key was not changed: {refusal:?}"),
    }
}

/// Revokes a key as the operator does.
pub(super) async fn revoke(store: &dyn Store, account: &AccountId, id: &KeyId) -> Key {
    changed(store.change_key(account, id, None, KeyChange::Revoke, NOON).await.unwrap())
}

/// Reads a key that must exist.
pub(super) async fn status(store: &dyn Store, account: &AccountId, id: &KeyId, now: Timestamp) -> KeyStatus {
    store.key(account, id, now.day()).await.unwrap().expect("the key exists")
}

/// The usage that counts towards the budget of a key, in atoms.
pub(super) async fn spent(store: &dyn Store, account: &AccountId, id: &KeyId) -> i64 {
    status(store, account, id, NOON).await.spent.expect("the key has a budget").amount.atoms()
}
