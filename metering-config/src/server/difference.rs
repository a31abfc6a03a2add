//! The keys in which two configurations differ.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::server::secret_files::names_file;
use crate::server::values::flatten;
use crate::server::{Config, Loaded, MASK};

impl Loaded {
    /// The keys with other values in `new`, sorted. Secrets are compared by digest, because their only printed form is
    /// a mask.
    ///
    /// # Errors
    /// When a configuration cannot be written as TOML.
    pub fn keys_that_differ(&self, new: &Self) -> Result<BTreeSet<String>, toml::ser::Error> {
        let (before, after) = (self.shown()?, new.shown()?);
        let differs = |key: &&String| {
            let (before, after) = (before.get(*key), after.get(*key));
            let masked = after.is_some_and(|value| value.to_string().contains(MASK));
            before != after || ((masked || names_file(key)) && self.digests.get(*key) != new.digests.get(*key))
        };
        let mut keys: BTreeSet<_> = before.keys().chain(after.keys()).filter(differs).cloned().collect();
        // These keys appear and disappear together, and whether they exist matters more than their values.
        if self.config.tls.is_some() != new.config.tls.is_some() {
            keys.retain(|key| !key.starts_with("tls."));
            keys.insert("tls".to_owned());
        }
        Ok(keys)
    }

    /// Replaces the configuration after a reload that took those keys of `new`.
    pub fn take(&mut self, config: Config, new: &Self, is_taken: impl Fn(&str) -> bool) {
        self.config = config;
        self.digests.retain(|key, _| !is_taken(key));
        let taken = new.digests.iter().filter(|(key, _)| is_taken(key));
        self.digests.extend(taken.map(|(key, digest)| (key.clone(), *digest)));
    }

    /// The keys that are set to a secret.
    #[must_use]
    pub fn secret_keys(&self) -> Vec<String> {
        let values = self.shown().unwrap_or_default();
        let is_masked = |value: &Value| match value {
            Value::Array(_) => value.to_string().contains(MASK),
            value => value.as_str() == Some(MASK),
        };
        values.into_iter().filter(|(_, value)| is_masked(value)).map(|(key, _)| key).collect()
    }

    fn shown(&self) -> Result<BTreeMap<String, Value>, toml::ser::Error> {
        let mut values = BTreeMap::new();
        flatten("", Table::try_from(&self.config)?, &mut values);
        Ok(values)
    }
}
