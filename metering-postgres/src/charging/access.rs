//! The terms of secrets and keys, read under one value of `meter.access`.
//!
//! Every write that changes the keys of an account, their terms or their secrets draws `meter.access` anew, under the
//! lock of the meter row. What was read is therefore valid as long as the locked row has the same value, and no longer:
//! compare before you use anything here.

use std::iter::successors;
use std::sync::{Arc, LazyLock};

use foldhash::HashMap;
use metering_core::access::{Key, KeyHash, KeyId, KeyNumber, KeyTerms};
use metering_core::charging::{HoldId, KeyMeter, KeyState};
use metering_core::{AccountId, Timestamp};
use metering_sql::Record;
use tokio_postgres::Row;

use crate::charging::holds::ASKED_HOLD;
use crate::connection::session::GenericClient;
use crate::error::Result;
use crate::rows::{KEY_METER_COLUMNS, all, bytes, optional_bytes, optional_key_meter, optional_timestamp};
use crate::statements::{dialect, row_of};

/// A value of `meter.access`.
pub(crate) type AccessVersion = [u8; 16];

/// A secret of a key.
#[derive(Debug)]
pub(crate) struct SecretAccess {
    /// The value of its account's `meter.access` that it was read under. The account and the key never change.
    version: AccessVersion,
    pub(crate) account: i64,
    pub(crate) id: AccountId,
    pub(crate) key: KeyNumber,
    is_revoked: bool,
    expires_at: Option<Timestamp>,
}

/// A key, without its meter.
#[derive(Debug)]
pub(crate) struct KeyAccess {
    version: AccessVersion,
    id: KeyId,
    parent: Option<KeyNumber>,
    is_live: bool,
    terms: Arc<KeyTerms>,
    pub(crate) is_counted: bool,
}

/// Some secrets and keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Access {
    pub(crate) secrets: HashMap<KeyHash, Arc<SecretAccess>>,
    pub(crate) keys: HashMap<(i64, KeyNumber), Arc<KeyAccess>>,
}

/// Meters of keys by account number and key.
pub(crate) type KeyMeters = Vec<((i64, KeyNumber), KeyMeter)>;

impl SecretAccess {
    /// Whether it was read under this version.
    pub(crate) fn is_of(&self, version: AccessVersion) -> bool {
        self.version == version
    }

    /// Whether it is neither revoked nor expired, and its account is not revoked.
    pub(crate) fn works(&self, now: Timestamp) -> bool {
        !self.is_revoked && self.expires_at.is_none_or(|at| now < at)
    }
}

impl KeyAccess {
    /// Whether it was read under this version.
    pub(crate) fn is_of(&self, version: AccessVersion) -> bool {
        self.version == version
    }

    /// Its limit on tokens per minute; 0 for none.
    pub(crate) fn tokens_per_minute(&self) -> u32 {
        self.terms.tokens_per_minute
    }

    /// The key with this meter, as the charge rule takes it.
    pub(crate) fn state(&self, meter: KeyMeter) -> KeyState {
        let (id, terms) = (self.id.clone(), Arc::clone(&self.terms));
        KeyState { id, parent: self.parent, is_live: self.is_live, terms, meter }
    }
}

impl Access {
    pub(crate) fn key(&self, account: i64, key: KeyNumber) -> Option<&KeyAccess> {
        self.keys.get(&(account, key)).map(|key| &**key)
    }

    /// A key and its parent keys, as far as they are cached.
    pub(crate) fn chain(&self, account: i64, key: KeyNumber) -> impl Iterator<Item = (KeyNumber, &Arc<KeyAccess>)> {
        let at = move |number| self.keys.get(&(account, number)).map(|key| (number, key));
        successors(at(key), move |(_, key)| at(key.parent?))
    }

    /// Whether a key and all its parent keys are here, as of this version.
    pub(crate) fn has_chain(&self, account: i64, key: KeyNumber, version: AccessVersion) -> bool {
        let mut last = None;
        for (_, key) in self.chain(account, key) {
            if key.version != version {
                return false;
            }
            last = Some(key);
        }
        last.is_some_and(|key| key.parent.is_none())
    }

    /// Adds a key and its parent keys, as far as `from` has them.
    pub(crate) fn take_chain(&mut self, from: &Self, account: i64, key: KeyNumber) {
        for (number, key) in from.chain(account, key) {
            if self.keys.insert((account, number), Arc::clone(key)).is_some() {
                return;
            }
        }
    }

    /// The larger of the numbers of secrets and keys.
    pub(crate) fn len(&self) -> usize {
        self.secrets.len().max(self.keys.len())
    }

    /// Adds data that was read later.
    pub(crate) fn extend(&mut self, read: &Self) {
        self.secrets.extend(read.secrets.iter().map(|(secret, access)| (*secret, Arc::clone(access))));
        self.keys.extend(read.keys.iter().map(|(key, access)| (*key, Arc::clone(access))));
    }
}

static READ: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH RECURSIVE chain (account, number) AS ( \
           SELECT s.account, s.key FROM key_secret s WHERE s.hash = ANY($1) \
           UNION SELECT asked.account, asked.key FROM unnest($2::BIGINT[], $3::BIGINT[]) AS asked (account, key) \
           UNION SELECT h.account, h.key FROM unnest($4::BYTEA[]) AS asked (id) {ASKED_HOLD} \
           UNION SELECT k.account, k.parent FROM chain c \
             JOIN api_key k ON k.account = c.account AND k.number = c.number WHERE k.parent IS NOT NULL) \
         SELECT m.access, s.hash, s.expires_at, s.revoked_at IS NOT NULL OR a.revoked_at IS NOT NULL, a.id, \
           {KEY_METER_COLUMNS}, {} \
         FROM chain h JOIN api_key ON api_key.account = h.account AND api_key.number = h.number \
         JOIN account a ON a.id = h.account JOIN meter m ON m.account = h.account \
         LEFT JOIN key_meter c ON c.account = h.account AND c.key = h.number \
         LEFT JOIN key_secret s ON s.account = h.account AND s.key = h.number AND s.hash = ANY($1)",
        dialect(&Key::TABLE.column_list())
    )
});
/// Where the columns of the key start.
const KEY: usize = 12;

/// Reads secrets, and the chains of keys that they, these `keys` and the keys of these `holds` begin. One statement, so
/// that everything was true at the same time as the versions that are read with it. If the meters of the accounts are
/// locked, so are the returned ones of the keys.
pub(crate) async fn read<C: GenericClient>(
    client: &C,
    secrets: &[KeyHash],
    keys: &[(i64, KeyNumber)],
    holds: &[HoldId],
) -> Result<(Access, KeyMeters)> {
    let secrets: Vec<&[u8]> = secrets.iter().map(|secret| secret.as_bytes().as_slice()).collect();
    let holds: Vec<&[u8]> = holds.iter().map(|hold| hold.as_bytes().as_slice()).collect();
    let (accounts, numbers): (Vec<i64>, Vec<i64>) =
        keys.iter().map(|(account, key)| (*account, i64::from(key.get()))).unzip();
    let (mut access, mut meters) = (Access::default(), KeyMeters::new());
    for row in all(client, &READ, &[&secrets, &accounts, &numbers, &holds]).await? {
        add_row(&row, &mut access, &mut meters)?;
    }
    Ok((access, meters))
}

fn add_row(row: &Row, access: &mut Access, meters: &mut KeyMeters) -> Result<()> {
    let (version, account) = (bytes(row, 0)?, row.try_get(4)?);
    let key = Key::of_row_at(&row_of(row, &Arc::default())?, KEY)?;
    let number = key.number;
    if let Some(hash) = optional_bytes(row, 1)? {
        let (expires_at, is_revoked) = (optional_timestamp(row, 2)?, row.try_get::<_, Option<bool>>(3)?);
        let (id, is_revoked) = (key.account.clone(), is_revoked.unwrap_or(true));
        let secret = SecretAccess { version, account, id, key: number, is_revoked, expires_at };
        access.secrets.insert(KeyHash::from_bytes(hash), Arc::new(secret));
    }
    // A key has a row for each of its secrets.
    if access.key(account, number).is_some() {
        return Ok(());
    }
    meters.extend(optional_key_meter(row, 5)?.map(|meter| ((account, number), meter)));
    let (is_live, is_counted) = (key.is_live(), key.terms.is_counted());
    let Key { id, parent, terms, .. } = key;
    let key = KeyAccess { version, id, parent, is_live, is_counted, terms: Arc::new(terms) };
    access.keys.insert((account, number), Arc::new(key));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: i64 = 7;

    fn key(version: u8, parent: Option<u32>) -> Arc<KeyAccess> {
        let (version, parent) = ([version; 16], parent.map(KeyNumber::new));
        let (id, terms) = ("key_0123456789abcdef0123".parse().unwrap(), Arc::new(KeyTerms::first()));
        Arc::new(KeyAccess { version, id, parent, is_live: true, terms, is_counted: false })
    }

    #[test]
    fn a_chain_is_complete_up_to_the_first_key_and_of_one_version() {
        let mut access = Access::default();
        access.keys.insert((ACCOUNT, KeyNumber::new(5)), key(1, Some(2)));
        access.keys.insert((ACCOUNT, KeyNumber::new(2)), key(1, Some(0)));
        let has = |access: &Access, number, version| access.has_chain(ACCOUNT, KeyNumber::new(number), [version; 16]);
        assert!(!has(&access, 5, 1), "the first key is missing");
        access.keys.insert((ACCOUNT, KeyNumber::FIRST), key(1, None));
        assert_eq!([0, 2, 5, 6].map(|number| has(&access, number, 1)), [true, true, true, false]);
        assert!(!has(&access, 5, 2), "another version");
        access.keys.insert((ACCOUNT, KeyNumber::new(2)), key(2, Some(0)));
        assert!(!has(&access, 5, 1) && !has(&access, 5, 2), "keys of two versions");
        let chain: Vec<u32> = access.chain(ACCOUNT, KeyNumber::new(5)).map(|(number, _)| number.get()).collect();
        assert_eq!(chain, [5, 2, 0]);
    }
}
