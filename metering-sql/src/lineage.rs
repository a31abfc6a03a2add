//! Which keys of an account are below which.

use std::collections::HashMap;

use metering_core::access::KeyNumber;

use crate::executor::Executor;
use crate::fault::Result;
use crate::values;

/// The keys of an account, as far as it takes to go from one to its parents and children.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    /// The parent of each key, and whether the key itself is live.
    keys: HashMap<KeyNumber, (Option<KeyNumber>, bool)>,
}

impl Lineage {
    /// Reads all keys of an account.
    pub(crate) async fn read(db: &mut dyn Executor, account: i64) -> Result<Self> {
        let sql = "SELECT number, parent, NOT disabled AND leaked_at IS NULL AND revoked_at IS NULL FROM api_key \
                   WHERE account = ?1";
        let rows = db.query(sql, &values![account]).await?;
        let key = |row: &crate::Row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
        Ok(Self { keys: rows.iter().map(key).collect::<Result<_>>()? })
    }

    /// Adds a key.
    pub(crate) fn add(&mut self, key: KeyNumber, parent: Option<KeyNumber>, is_live: bool) {
        self.keys.insert(key, (parent, is_live));
    }

    /// A key and its parents.
    pub(crate) fn chain(&self, key: KeyNumber) -> impl Iterator<Item = KeyNumber> {
        // A parent is always older, so this ends.
        let parent = |key: &KeyNumber| self.keys.get(key)?.0.filter(|parent| parent < key);
        std::iter::successors(Some(key), parent)
    }

    /// Whether all parents of a key are live.
    pub(crate) fn parents_are_live(&self, key: KeyNumber) -> bool {
        self.chain(key).skip(1).all(|key| self.keys.get(&key).is_some_and(|(_, is_live)| *is_live))
    }

    /// A key and its children, at any depth.
    pub(crate) fn below(&self, key: KeyNumber) -> Vec<KeyNumber> {
        self.keys.keys().copied().filter(|other| self.chain(*other).any(|above| above == key)).collect()
    }
}
