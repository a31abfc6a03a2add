//! The keys of a cached account.

use std::sync::Arc;

use metering_core::access::{KeyNumber, KeyTerms};
use metering_core::charging::{KeyMeter, KeyState};
use rusqlite::Connection;

use crate::access::keys;
use crate::charging::inline_text::InlineText;
use crate::error::Result;
use crate::rows::parse;

/// The keys of an account that charges came with, and their parent keys. Most accounts have one key, and that is as it
/// was made: of such a key only the id is kept.
#[derive(Debug, Clone)]
pub(crate) struct CachedKeys {
    /// The public id of the first key, if that is live, is not counted and has its first terms. Otherwise empty.
    first: InlineText<24>,
    /// All others, by number.
    others: Box<[(KeyNumber, KeyState)]>,
}

impl Default for CachedKeys {
    fn default() -> Self {
        Self { first: InlineText::EMPTY, others: Box::default() }
    }
}

impl CachedKeys {
    /// The state of a key, if the account has it. Reads it if it is not known yet. `id` is that of the account.
    pub(super) fn get(
        &mut self,
        connection: &Connection,
        account: i64,
        id: &str,
        number: KeyNumber,
    ) -> Result<Option<KeyState>> {
        if number.is_first() && !self.first.is_empty() {
            return as_made(self.first.as_str()).map(Some);
        }
        let place = match self.others.binary_search_by_key(&number, |(known, _)| *known) {
            Ok(place) => return Ok(Some(self.others[place].1.clone())),
            Err(place) => place,
        };
        let Some((key, meter)) = keys::by_number(connection, account, &parse(id)?, number)? else { return Ok(None) };
        let mut state = KeyState::of(&key, meter.unwrap_or_default());
        state.terms = shared(state.terms);
        if number.is_first()
            && as_made(state.id.as_str())? == state
            && let Some(first) = InlineText::of(state.id.as_str())
        {
            self.first = first;
            return Ok(Some(state));
        }
        let mut others = std::mem::take(&mut self.others).into_vec();
        others.insert(place, (number, state.clone()));
        self.others = others.into_boxed_slice();
        Ok(Some(state))
    }

    /// Notes a meter that is being written. First keys with their first terms have none.
    pub(super) fn set_meter(&mut self, number: KeyNumber, meter: KeyMeter) {
        if let Ok(place) = self.others.binary_search_by_key(&number, |(known, _)| *known) {
            self.others[place].1.meter = meter;
        }
    }
}

/// The state of a first key that is as it was made.
fn as_made(id: &str) -> Result<KeyState> {
    Ok(KeyState { id: parse(id)?, parent: None, is_live: true, terms: first_terms(), meter: KeyMeter::default() })
}

/// One copy of the terms that nearly all first keys have.
fn shared(terms: Arc<KeyTerms>) -> Arc<KeyTerms> {
    let first = first_terms();
    if first == terms { first } else { terms }
}

fn first_terms() -> Arc<KeyTerms> {
    thread_local! {
        static FIRST: Arc<KeyTerms> = Arc::new(KeyTerms::first());
    }
    FIRST.with(Arc::clone)
}
