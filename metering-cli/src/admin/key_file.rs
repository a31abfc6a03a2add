//! Files with the service's signing keys: receipts of requests, and checkpoints of the log.

use std::io::Write;
use std::path::Path;

use metering_core::{Randomness, SystemRandomness};
use metering_log::keys::{JwkSet, MalformedKey, PrivateKey, PublicKey};
use zeroize::Zeroizing;

use crate::failure::Failure;
use crate::new_file::{NewFile, Owner};

/// Creates a file with a new key, readable by its owner only: if root runs the command, the owner of its folder. A file
/// that exists is not replaced.
pub(super) fn create(file: &Path) -> Result<(PublicKey, Owner), Failure> {
    create_after(file, &JwkSet::default())
}

/// Like [`create`], with the public keys before it: what they signed stays verifiable.
pub(super) fn create_after(file: &Path, earlier: &JwkSet) -> Result<(PublicKey, Owner), Failure> {
    let key = generate();
    let (public, private) = (public_pem(earlier)?, key.to_pem().map_err(unwritable)?);
    let mut new = NewFile::next_to(file, false)?;
    let owner = new.give_to_folder()?;
    let written = new.write_all(public.as_bytes()).and_then(|()| new.write_all(private.as_bytes()));
    written.map_err(|error| new.cannot_write(&error))?;
    new.finish()?;
    Ok((key.public(), owner))
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

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, chown};

    use super::*;

    #[test]
    fn a_new_file_belongs_to_the_owner_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let access = |path: &Path| {
            let metadata = fs::metadata(path).unwrap();
            (metadata.uid(), metadata.gid(), metadata.mode() & 0o777)
        };
        let (uid, gid, _) = access(folder.path());
        // Only root can give files away. For everybody else, the folder is their own already.
        let mut owners = vec![(uid, gid, if uid == 0 { Owner::Root } else { Owner::Maker })];
        if uid == 0 {
            owners.push((64_001, 64_002, Owner::Folder));
        }
        for (uid, gid, expected) in owners {
            chown(folder.path(), Some(uid), Some(gid)).unwrap();
            let file = folder.path().join(uid.to_string());
            let (_, owner) = create(&file).unwrap();
            assert_eq!((owner, access(&file)), (expected, (uid, gid, 0o600)));
        }
    }
}
