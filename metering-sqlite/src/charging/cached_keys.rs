//! The keys of a cached account.

use std::sync::Arc;

use metering_core::AccountId;
use metering_core::access::{KeyNumber, KeyTerms};
use metering_core::charging::{KeyMeter, KeyState};
use rusqlite::Connection;

use crate::access::keys;
use crate::error::Result;

/// The keys of an account that charges came with, and their parent keys, by number. A list, since most accounts have one
/// key, and a map of one is large.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedKeys(Vec<(KeyNumber, KeyState)>);

impl CachedKeys {
    /// The state of a key, if the account has it. Reads it if it is not known yet.
    pub(super) fn get(
        &mut self,
        connection: &Connection,
        account: i64,
        id: &AccountId,
        number: KeyNumber,
    ) -> Result<Option<KeyState>> {
        let place = match self.0.binary_search_by_key(&number, |(known, _)| *known) {
            Ok(place) => return Ok(Some(self.0[place].1.clone())),
            Err(place) => place,
        };
        let Some((key, meter)) = keys::by_number(connection, account, id, number)? else { return Ok(None) };
        let mut state = KeyState::of(&key, meter.unwrap_or_default());
        state.terms = shared(state.terms);
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        self.0.insert(place, (number, state.clone()));
        Ok(Some(state))
    }

    /// Notes a meter that is being written.
    pub(super) fn set_meter(&mut self, number: KeyNumber, meter: KeyMeter) {
        if let Ok(place) = self.0.binary_search_by_key(&number, |(known, _)| *known) {
            self.0[place].1.meter = meter;
        }
    }
}

/// One copy of the terms that nearly all first keys have.
fn shared(terms: Arc<KeyTerms>) -> Arc<KeyTerms> {
    thread_local! {
        static FIRST: Arc<KeyTerms> = Arc::new(KeyTerms::first());
    }
    FIRST.with(|first| if **first == *terms { Arc::clone(first) } else { terms })
}
