//! A bounded map in two generations. Entries that were not used in a whole generation are dropped, so busy ones stay.

use std::collections::hash_map::Entry;
use std::hash::Hash;

use foldhash::HashMap;

/// The entries used since the last call of [`Generations::age`], and those used in the previous generation.
#[derive(Debug)]
pub(crate) struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for Generations<K, V> {
    fn default() -> Self {
        Self { young: HashMap::default(), old: HashMap::default() }
    }
}

impl<K: Copy + Eq + Hash, V> Generations<K, V> {
    /// The value of a key, which is then of the younger generation.
    pub(crate) fn get(&mut self, key: &K) -> Option<&mut V> {
        match self.young.entry(*key) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(entry) => self.old.remove(key).map(|value| entry.insert(value)),
        }
    }

    /// The value of a key, which stays in its generation.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many entries both generations have.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// How many entries the younger generation has.
    pub(crate) fn young(&self) -> usize {
        self.young.len()
    }

    /// Forgets the older generation, and begins another one.
    pub(crate) fn age(&mut self) {
        // The memory of the older one is used again.
        self.old.clear();
        std::mem::swap(&mut self.young, &mut self.old);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_in_each_generation_stays() {
        let mut map = Generations::default();
        for key in 0..3 {
            map.insert(key, 10 * key);
        }
        assert_eq!(map.young(), 3);
        map.age();
        assert_eq!((map.young(), map.get(&1).copied()), (0, Some(10)));
        assert_eq!((map.peek(&0).copied(), map.peek(&1).copied(), map.len()), (Some(0), Some(10), 3));
        map.age();
        assert_eq!([0, 1, 2].map(|key| map.get(&key).copied()), [None, Some(10), None]);
    }

    #[test]
    fn a_key_has_one_value_in_both_generations() {
        let mut map = Generations::default();
        map.insert(1, 10);
        map.age();
        map.insert(1, 11);
        assert_eq!(map.get(&1), Some(&mut 11));
        map.age();
        map.remove(&1);
        assert_eq!(map.get(&1), None);
        map.insert(2, 20);
        map.clear();
        assert_eq!((map.young(), map.get(&2)), (0, None));
    }
}
