//! Signed statements, key sets and key files: nothing verifies by chance, and no error shows a private key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_log::keys::{JwkSet, Jws, KeyRing, PrivateKey};

fuzz_target!(|text: &str| {
    if let Ok(jws) = Jws::parse(text) {
        // The key of nobody: a seed that no corpus has signed with.
        assert!(jws.verify(PrivateKey::from_seed(&[0xA5; 32]).public()).is_err());
    }
    if let Ok(set) = JwkSet::parse(text) {
        assert_eq!(JwkSet::parse(&set.to_json()), Ok(set));
    }
    match KeyRing::parse([text]) {
        Ok(ring) => assert!(ring.published().find(&ring.signing().public().thumbprint()).is_some()),
        Err(error) => assert!(error.to_string().len() < 200, "an error quotes the file"),
    }
});
