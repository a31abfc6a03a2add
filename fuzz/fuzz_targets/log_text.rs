//! The texts of transparency logs: paths, notes, checkpoints, keys, proofs and requests to witnesses. What is read is written
//! again as the same text, so no two texts mean the same.
#![no_main]

use std::fmt::Display;
use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use metering_log::checkpoint::{Checkpoint, LogProof, SignedCheckpoint};
use metering_log::note::{NoteSignature, SignedNote, VerifierKey};
use metering_log::tree::{LogPath, TreeHash};
use metering_log::witness::AddCheckpoint;

fn reads_and_writes<T: FromStr + Display>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string(), text);
    }
}

fuzz_target!(|text: &str| {
    reads_and_writes::<LogPath>(text);
    reads_and_writes::<TreeHash>(text);
    reads_and_writes::<NoteSignature>(text);
    reads_and_writes::<VerifierKey>(text);
    reads_and_writes::<Checkpoint>(text);
    reads_and_writes::<SignedCheckpoint>(text);
    reads_and_writes::<LogProof>(text);
    reads_and_writes::<AddCheckpoint>(text);
    if let Ok(note) = SignedNote::parse(text) {
        assert_eq!(note.to_string(), text);
        assert!(note.verify(&[]).is_err(), "nothing is verified without a key");
    }
});
