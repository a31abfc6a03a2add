//! The public ids of keys by number. A charge has only the number; a receipt has the id, which survives rotations.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use metering_core::AccountId;
use metering_core::access::{KeyId, KeyNumber};
use metering_core::receipts::ReceiptError;
use metering_core::store::KeyStore;

/// How many ids are remembered, a few megabytes.
const MAX_KNOWN: usize = 65_536;

pub(crate) struct KeyIds {
    store: Arc<dyn KeyStore>,
    known: Mutex<HashMap<(AccountId, KeyNumber), KeyId>>,
}

impl KeyIds {
    pub(crate) fn new(store: Arc<dyn KeyStore>) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// The id of a key, from the store the first time. It never changes.
    pub(crate) async fn get(&self, account: &AccountId, number: KeyNumber) -> Result<KeyId, ReceiptError> {
        let key = (account.clone(), number);
        let known = self.known().get(&key).cloned();
        if let Some(id) = known {
            return Ok(id);
        }
        let label = self.store.key_labels(account).await?.into_iter().find(|label| label.number == number);
        let unknown = || ReceiptError::Invalid(format!("{account} has no key with the number {}", number.get()));
        let id = label.ok_or_else(unknown)?.id;
        let mut known = self.known();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, id.clone());
        Ok(id)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<(AccountId, KeyNumber), KeyId>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
