//! Which keys of an account are below which.

use std::collections::HashMap;

use metering_core::access::KeyNumber;

use crate::executor::Executor;
use crate::fault::Result;
use crate::value::Value;
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
        Ok(Self::of_accounts(db, "= ?1", &values![account]).await?.remove(&account).unwrap_or_default())
    }

    /// Reads all keys of the accounts whose row numbers match.
    pub(crate) async fn of_accounts(
        db: &mut dyn Executor,
        condition: &str,
        values: &[Value],
    ) -> Result<HashMap<i64, Self>> {
        let sql = format!(
            "SELECT account, number, parent, NOT disabled AND leaked_at IS NULL AND revoked_at IS NULL FROM api_key \
             WHERE account {condition}"
        );
        let mut found: HashMap<i64, Self> = HashMap::new();
        for row in db.query(&sql, values).await? {
            found.entry(row.get(0)?).or_default().keys.insert(row.get(1)?, (row.get(2)?, row.get(3)?));
        }
        Ok(found)
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
