//! Files with the service's signing keys: receipts of requests, and checkpoints of the log.

use std::io::Write;
use std::path::Path;

use metering_core::{Randomness, SystemRandomness};
use metering_log::keys::{JwkSet, MalformedKey, PrivateKey, PublicKey};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::new_file::NewFile;

/// Creates a file with a new key, readable by its owner only. A file that exists is not replaced.
pub(super) fn create(file: &Path) -> Result<PublicKey, Failure> {
    create_after(file, &JwkSet::default())
}

/// Like [`create`], with the public keys before it: what they signed stays verifiable.
pub(super) fn create_after(file: &Path, earlier: &JwkSet) -> Result<PublicKey, Failure> {
    let key = generate();
    let (public, private) = (public_pem(earlier)?, key.to_pem().map_err(unwritable)?);
    let mut new = NewFile::next_to(file, false)?;
    let written = new.write_all(public.as_bytes()).and_then(|()| new.write_all(private.as_bytes()));
    written.map_err(|error| new.cannot_write(&error))?;
    new.finish()?;
    Ok(key.public())
}

/// Public keys in PEM, one after another.
pub(super) fn public_pem(keys: &JwkSet) -> Result<String, Failure> {
    keys.iter().map(|(_, key)| key.to_pem()).collect::<Result<String, _>>().map_err(unwritable)
}

pub(super) fn generate() -> PrivateKey {
    let mut seed = Zeroizing::new([0_u8; 32]);
    SystemRandomness.fill(&mut *seed);
    PrivateKey::from_seed(&seed)
}

pub(super) fn unwritable(error: MalformedKey) -> Failure {
    Failure::Failed(format!("the key cannot be written: {error}"))
}
