//! The keys in which two configurations differ.

use std::collections::BTreeSet;

use crate::config::Loaded;
use crate::run::RunError;

/// The keys with different values, sorted.
///
/// # Errors
/// When a configuration cannot be written as TOML.
pub(super) fn between(old: &Loaded, new: &Loaded) -> Result<BTreeSet<String>, RunError> {
    old.keys_that_differ(new).map_err(|error| RunError::Setup(Box::new(error)))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;
    use crate::config::{Arguments, load};
    use crate::run::reload::{is_reloaded, with_reloaded};

    fn loaded(variables: &[(&str, &str)]) -> Loaded {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        load(&Arguments::default(), variables).unwrap()
    }

    const SECRET: &str = "METERING_BILLING__INTERNAL_SECRET";
    const CREDENTIAL: &str = "METERING_GATEWAY__UPSTREAM_HEADERS__AUTHORIZATION";
    const TLS: [(&str, &str); 2] = [("METERING_TLS__CERTIFICATE", "c.pem"), ("METERING_TLS__KEY", "k.pem")];

    #[test]
    fn differences_are_found_by_key_and_divided() {
        let other_key = [TLS[0], ("METERING_TLS__KEY", "other.pem")];
        // before, after, taken by a reload, left for a restart
        type Variables<'v> = &'v [(&'v str, &'v str)];
        let table: [(Variables<'_>, Variables<'_>, &[&str], &[&str]); 11] = [
            (&[], &[], &[], &[]),
            (&[], &[("METERING_LISTEN", "127.0.0.1:8787")], &[], &[]),
            (&[], &[("METERING_LISTEN", "127.0.0.1:1")], &[], &["listen"]),
            (
                &[("METERING_LIMITS__SIGNUP_PER_IP", "1/1m")],
                &[("METERING_BRAND__NAME", "Acme"), ("METERING_HTTP__BODY_TIMEOUT", "3s")],
                &["brand.name", "limits.signup_per_ip"],
                &["http.body_timeout"],
            ),
            (&[(SECRET, "0123456789abcdef")], &[(SECRET, "0123456789abcdeg")], &[], &["billing.internal_secret"]),
            (&[(SECRET, "0123456789abcdef")], &[(SECRET, "0123456789abcdef")], &[], &[]),
            (&[], &[(CREDENTIAL, "a")], &["gateway.upstream_headers.authorization"], &[]),
            (&[(CREDENTIAL, "a")], &[(CREDENTIAL, "b")], &["gateway.upstream_headers.authorization"], &[]),
            (&[], &[("METERING_RECEIPTS__NUMBERING", "consecutive")], &["receipts.numbering"], &[]),
            (&TLS, &other_key, &["tls.key"], &[]),
            (&[], &TLS, &[], &["tls"]),
        ];
        for (before, after, reloaded, restart) in table {
            let keys = between(&loaded(before), &loaded(after)).unwrap();
            let (taken, left): (Vec<_>, Vec<_>) = keys.iter().map(String::as_str).partition(|key| is_reloaded(key));
            assert_eq!((taken.as_slice(), left.as_slice()), (reloaded, restart), "{before:?} {after:?}");
        }
    }

    #[test]
    fn only_reloaded_keys_get_new_values() {
        let (before, mut after) =
            (loaded(&TLS), loaded(&[("METERING_LISTEN", "127.0.0.1:1"), ("METERING_BRAND__NAME", "Acme")]));
        let config = with_reloaded(&before.config, after.config.clone());
        assert_eq!((config.listen.as_str(), config.brand.name.as_str()), ("127.0.0.1:8787", "Acme"));
        assert!(config.tls.is_some(), "HTTPS stays");
        after.config = config;
        let left = between(&after, &loaded(&TLS)).unwrap();
        assert_eq!(left.into_iter().collect::<Vec<_>>(), ["brand.name"]);
    }

    #[test]
    fn the_file_of_an_upstream_header_differs_once_until_it_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("key");
        let named = [("METERING_GATEWAY__UPSTREAM_HEADERS__AUTHORIZATION__FILE", file.to_str().unwrap())];
        std::fs::write(&file, "one").unwrap();
        let mut in_use = loaded(&named);
        std::fs::write(&file, "two").unwrap();
        let new = loaded(&named);
        let keys = between(&in_use, &new).unwrap();
        assert_eq!(keys.into_iter().collect::<Vec<_>>(), ["gateway.upstream_headers.authorization.file"]);
        let config = with_reloaded(&in_use.config, new.config.clone());
        assert_eq!(config.gateway.upstream_headers.pairs().unwrap()[0].1, "two");
        in_use.take(config, &new, is_reloaded);
        assert!(between(&in_use, &loaded(&named)).unwrap().is_empty());
    }
}
