//! The keys of the log of postings: the current one, and during a rotation the previous one too.

use metering_log::keys::{KeyRing, PrivateKey, PublicKey};

/// The keys of the log of postings.
#[derive(Debug, Clone)]
pub struct LogKeys {
    current: KeyRing,
    /// The keys of the previous file, during a rotation.
    previous: Option<KeyRing>,
}

impl LogKeys {
    /// The keys of `log.key_file`, and during a rotation those of `log.previous_key_file`.
    #[must_use]
    pub fn new(current: KeyRing, previous: Option<KeyRing>) -> Self {
        Self { current, previous }
    }

    /// The keys that sign. Clients should trust the first one.
    pub fn signing(&self) -> impl Iterator<Item = &PrivateKey> {
        self.rings().map(KeyRing::signing)
    }

    /// All public keys, to publish: first the one that clients should trust.
    #[must_use]
    pub fn published(&self) -> Vec<PublicKey> {
        let mut published = vec![self.current.signing().public()];
        for ring in self.rings() {
            for (_, key) in ring.published().iter() {
                if !published.contains(&key) {
                    published.push(key);
                }
            }
        }
        published
    }

    fn rings(&self) -> impl Iterator<Item = &KeyRing> {
        std::iter::once(&self.current).chain(&self.previous)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn during_a_rotation_both_keys_sign_and_each_public_key_is_published_once() {
        let [first, old, new] = [1, 2, 3].map(|seed| PrivateKey::from_seed(&[seed; 32]));
        let ring = |public: &[&PrivateKey], private: &PrivateKey| {
            let public: String = public.iter().map(|key| key.public().to_pem().unwrap()).collect();
            KeyRing::parse([format!("{public}{}", *private.to_pem().unwrap()).as_str()]).unwrap()
        };
        let keys = LogKeys::new(ring(&[&first, &old], &new), Some(ring(&[&first], &old)));
        let public = |key: &PrivateKey| key.public();
        assert_eq!(keys.signing().map(public).collect::<Vec<_>>(), [&new, &old].map(public));
        assert_eq!(keys.published(), [&new, &first, &old].map(public));
        let ended = LogKeys::new(ring(&[&first, &old], &new), None);
        assert_eq!(ended.signing().map(public).collect::<Vec<_>>(), [new.public()]);
        assert_eq!(ended.published(), keys.published());
    }
}
