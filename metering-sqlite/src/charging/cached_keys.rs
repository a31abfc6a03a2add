//! The keys of a cached account.

use std::sync::Arc;

use metering_core::access::{KeyNumber, KeyTerms};
use metering_core::charging::{KeyMeter, KeyState};
use rusqlite::Connection;

use crate::access::keys;
use crate::error::Result;
use crate::rows::parse;

/// The keys of an account that charges came with, and their parent keys. Most accounts have one key, which never
/// changed: of such a key only the id is kept.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedKeys {
    /// The load of the account that they belong to. Secrets that were read for an earlier load are no longer valid.
    pub(super) load: u32,
    /// The public id of the first key, if that key is live, not counted and still has its first terms.
    first: Option<FirstId>,
    others: Option<Box<Others>>,
}

/// All other keys, by number.
#[derive(Debug, Clone, Default)]
struct Others(Vec<(KeyNumber, KeyState)>);

/// The number in the public id of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FirstId([u8; 10]);

const _: () = assert!(size_of::<CachedKeys>() <= 24, "each account has some");

impl CachedKeys {
    /// The state of a key, if the account has it. Reads it if it is not cached yet.
    pub(super) fn get(&mut self, connection: &Connection, account: i64, number: KeyNumber) -> Result<Option<KeyState>> {
        if number.is_first()
            && let Some(first) = self.first
        {
            return first.as_made().map(Some);
        }
        let others = match &self.others {
            Some(others) => &others.0[..],
            None => &[],
        };
        let place = match others.binary_search_by_key(&number, |(known, _)| *known) {
            Ok(place) => return Ok(Some(others[place].1.clone())),
            Err(place) => place,
        };
        let Some((key, meter)) = keys::by_number(connection, account, number)? else { return Ok(None) };
        let mut state = KeyState::of(&key, meter.unwrap_or_default());
        state.terms = shared(state.terms);
        if number.is_first()
            && let Some(first) = FirstId::of(state.id.as_str())
            && first.as_made()? == state
        {
            self.first = Some(first);
            return Ok(Some(state));
        }
        let others = &mut self.others.get_or_insert_default().0;
        others.reserve_exact(1);
        others.insert(place, (number, state.clone()));
        Ok(Some(state))
    }

    /// Notes a meter that is being written. First keys with their first terms have none.
    pub(super) fn set_meter(&mut self, number: KeyNumber, meter: KeyMeter) {
        if let Some(others) = &mut self.others
            && let Ok(place) = others.0.binary_search_by_key(&number, |(known, _)| *known)
        {
            others.0[place].1.meter = meter;
        }
    }
}

impl FirstId {
    const PREFIX: &str = "key_";
    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    /// `None` if the id has another form.
    fn of(id: &str) -> Option<Self> {
        let digits = id.strip_prefix(Self::PREFIX)?.as_bytes();
        let mut number = [0; 10];
        for (byte, pair) in number.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
        }
        (digits.len() == 2 * number.len()).then_some(Self(number))
    }

    /// The state of a first key that never changed.
    fn as_made(self) -> Result<KeyState> {
        let mut id = *b"key_00000000000000000000";
        for (pair, byte) in id[Self::PREFIX.len()..].chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[byte >> 4, byte & 15].map(|digit| Self::DIGITS[usize::from(digit)]));
        }
        let id = parse(std::str::from_utf8(&id).unwrap_or_default())?;
        Ok(KeyState { id, parent: None, is_live: true, terms: first_terms(), meter: KeyMeter::default() })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_key_id_round_trips() {
        for id in ["key_0123456789abcdef0123", "key_ffffffffffffffffffff", "key_00000000000000000000"] {
            assert_eq!(FirstId::of(id).unwrap().as_made().unwrap().id.as_str(), id);
        }
        for id in ["key_", "key_0123456789abcdef012", "key_0123456789abcdef01234", "key_0123456789abcdef012345", "k"] {
            assert_eq!(FirstId::of(id), None, "{id}");
        }
    }
}
