//! The output of another implementation: made with the Python package aics-tlog 0.2.1, from the same keys and entries.
//! Ed25519 signatures are deterministic, so ours must be the same bytes.

use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::keys::PrivateKey;
use metering_log::note::{Cosigner, KeyName, NoteSigner};
use metering_log::tree::{Leaves, TreeHash, read_root};

const LOG_KEY: &str = "example.com/log+9be5d3c6+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c";
const WITNESS_KEY: &str = "example.com/witness+21457d9f+BIE5dw6ofRdfVqNUZsNMfszLjYqRtO43ol32D1uPybOU";
const COSIGNED: &str = "example.com/log\n3\nNmQuc8JUCrEh46a/lUWwokmCzYMOsT080Z3jzmwCHsE=\n\n\
    — example.com/log m+XTxhos17CrPy7WVMie6JwAfofnklGFM07uLnKTApi/1s31NHvvx9llf+ueHqgoIPP62xjL1pUpGf2an2QB04hG4wA=\n\
    — example.com/witness IUV9nwAAAABrDMkAEDYs4dYd2vEbixuhwvZubte0XDJPg63vU0li6/6YuV/M9YUs0x7UX0TcIuCKgPOC2knTkNmsxWqm\
    dAHg0mU3DA==\n";

#[test]
fn checkpoints_and_cosignatures_are_those_of_another_implementation() {
    let log = NoteSigner::new(KeyName::new("example.com/log").unwrap(), PrivateKey::from_seed(&[1; 32]));
    let witness = Cosigner::new(KeyName::new("example.com/witness").unwrap(), PrivateKey::from_seed(&[2; 32]));
    assert_eq!(log.verifier().to_string(), LOG_KEY);
    assert_eq!(witness.verifier().to_string(), WITNESS_KEY);

    let leaves = [b"a", b"b", b"c"].map(|entry| TreeHash::leaf(entry));
    let root = read_root(&Leaves(&leaves), 3).unwrap();
    let mut signed = SignedCheckpoint::sign(Checkpoint::new("example.com/log", 3, root).unwrap(), &log).unwrap();
    let cosignature = witness.cosign(signed.note().text(), 1_796_000_000);
    signed.note_mut().add(cosignature);
    assert_eq!(signed.to_string(), COSIGNED);
}
