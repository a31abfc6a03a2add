//! The log of every posting: how it begins and continues, what is verified, and what is pruned.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::store::{LogStep, LogStore, StoredBundle};
use metering_log::checkpoint::{Checkpoint, SignedCheckpoint};
use metering_log::keys::KeyRing;
use metering_log::note::{KeyName, NoteSigner, VerifierKey};
use metering_log::tree::TreeHash;
use serde_json::Value;

use crate::program::{Program, mode};
use crate::store::block_on;

const INIT: &str = "log init log.pem --public-url https://Example.com/api/";
const NEW_EPOCH: &str = "log new-epoch log.pem --public-url https://example.com/api --because";
/// How a log ended in another database.
const PREVIOUS: &str = "--previous example.com/api/log/3:0:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

/// A store with one account, and a log of it.
fn with_log() -> Program {
    let (program, _) = Program::with_account();
    program.run(INIT).success();
    program
}

#[test]
fn a_log_begins_once_and_clients_pin_its_key() {
    let (program, _) = Program::with_account();
    let none = "This store has no log. `metering admin log init` begins one.\n";
    assert_eq!(program.run("log status").success(), none);
    program.write("readable.pem", "");
    program.refuses(&[
        ("log verify", 4, "has no log"),
        ("log init log.pem", 2, "--public-url"),
        ("log init log.pem --public-url example.com", 2, "cannot be the URL of a log"),
        ("log init readable.pem --public-url https://example.com", 1, "readable.pem"),
        ("log status --server http://127.0.0.1:9", 2, "operator's token"),
    ]);
    assert!(!program.path("log.pem").exists(), "nothing is left of what was refused");
    assert_eq!(program.run("log status").success(), none);

    let begun: Value = program.json(INIT);
    assert_eq!((&begun["epoch"], &begun["created_key_file"]), (&1.into(), &true.into()));
    let verifier: VerifierKey = begun["verifier_key"].as_str().unwrap().parse().unwrap();
    assert_eq!(verifier.name().as_str(), "example.com/api/log/1");
    assert_eq!(begun["origin"], "example.com/api/log/1");
    let pem = program.read("log.pem");
    assert_eq!(KeyRing::parse([pem.as_str()]).unwrap().signing().public(), verifier.key());
    assert_eq!(mode(&program.path("log.pem")), 0o600);

    program.refuses(&[(INIT, 5, "the log example.com/api/log/1 has been open since")]);
    program.documents(&[
        ("audit", &[("/entries/0/action", "\"log.begin\""), ("/entries/0/subject", "\"example.com/api/log/1\"")]),
        ("log status", &[("/epochs/0/entries", "0"), ("/epochs/0/published", "null"), ("/unlogged", "1")]),
    ]);
}

#[test]
fn a_rotation_makes_a_new_key_file_and_says_what_to_do_with_it() {
    let (without_log, _) = Program::with_account();
    without_log.refuses(&[("log rotate log.pem new.pem", 4, "has no log")]);
    let program = with_log();
    let before = program.read("log.pem");
    program.refuses(&[
        ("log rotate log.pem", 2, "NEW_FILE"),
        ("log rotate log.pem log.pem", 5, "log.pem exists"),
        ("log rotate missing.pem new.pem", 1, "missing.pem"),
    ]);
    assert!(!program.path("new.pem").exists(), "nothing is left of what was refused");

    let rotated: Value = program.json("log rotate log.pem new.pem");
    assert_eq!(rotated["origin"], "example.com/api/log/1");
    let [new, old] = ["verifier_key", "previous_verifier_key"]
        .map(|member| rotated[member].as_str().unwrap().parse::<VerifierKey>().unwrap());
    assert_eq!([new.name().as_str(), old.name().as_str()], ["example.com/api/log/1"; 2]);
    let text = program.read("new.pem");
    let (ring, earlier) = (KeyRing::parse([text.as_str()]).unwrap(), KeyRing::parse([before.as_str()]).unwrap());
    assert_eq!((ring.signing().public(), earlier.signing().public()), (new.key(), old.key()));
    assert!(
        ring.published().iter().map(|(_, key)| key).eq([old.key(), new.key()]),
        "earlier statements can be verified"
    );
    assert_eq!(text.matches("BEGIN PRIVATE KEY").count(), 1);
    assert_eq!(mode(&program.path("new.pem")), 0o600);
    assert_eq!(program.read("log.pem"), before);

    // What has been made may already sign.
    program.refuses(&[("log rotate log.pem new.pem", 5, "new.pem exists")]);
    assert_eq!(program.read("new.pem"), text);
    let printed = program.run("log rotate new.pem third.pem").success();
    for step in ["third.pem\"\nprevious_key_file = ", "remove previous_key_file", "new.pem.last."] {
        assert!(printed.contains(step), "{printed}");
    }
    let third = program.read("third.pem");
    let secret = third.lines().nth_back(1).unwrap();
    assert!(!printed.contains(secret) && third.contains("BEGIN PRIVATE KEY"), "no private key is printed");

    // Clients know the key that signs, and no other.
    let origin = "example.com/api/log/1";
    let signer = NoteSigner::new(KeyName::new(origin).unwrap(), ring.signing().clone());
    let head = Checkpoint::new(origin, 0, TreeHash::EMPTY_TREE).unwrap();
    let published = SignedCheckpoint::sign(head, &signer).unwrap().to_string();
    block_on(async { program.store().publish_checkpoint(1, 0, published).await.unwrap() });
    program.refuses(&[("log rotate log.pem fourth.pem", 5, "log.pem has another key than the one that signs the log")]);
    assert!(!program.path("fourth.pem").exists());
    let _ = program.run("log rotate new.pem fourth.pem").success();
}

#[test]
fn a_restored_or_moved_store_begins_a_new_epoch() {
    let program = with_log();
    program.refuses(&[
        (NEW_EPOCH, 2, "--because"),
        (&format!("{NEW_EPOCH} init"), 2, "must be restored or moved"),
        (&format!("{NEW_EPOCH} restored"), 2, "add --yes"),
        (&format!("{NEW_EPOCH} moved {PREVIOUS} --yes"), 2, "this store has a log of its own, example.com/api/log/1"),
    ]);
    let begun: Value = program.json(&format!("{NEW_EPOCH} restored --yes"));
    assert_eq!((&begun["epoch"], &begun["origin"]), (&2.into(), &"example.com/api/log/2".into()));
    assert_eq!(begun["created_key_file"], false, "the same key, under another name");
    // The head of the first epoch, and the funds of the account.
    program.documents(&[("log status", &[("/epochs/1/ended_at", "null"), ("/unlogged", "2")])]);
    assert_ne!(program.json::<Value>("log status")["epochs"][0]["ended_at"], Value::Null);

    let (moved, _) = Program::with_account();
    moved.refuses(&[
        (&format!("{NEW_EPOCH} moved --yes"), 4, "--previous"),
        (&format!("{NEW_EPOCH} moved --previous example.com/log/3 --yes"), 2, "ORIGIN:SIZE:ROOT"),
        (&format!("{NEW_EPOCH} restored {PREVIOUS} --yes"), 4, "has no log"),
    ]);
    let text = moved.run(&format!("{NEW_EPOCH} moved {PREVIOUS} --yes")).success();
    assert!(text.starts_with("Created log.pem.") && text.contains("example.com/api/log/4"), "{text}");
    // The head of the log that stayed behind, and the funds of the account.
    moved.documents(&[("log status", &[("/epochs/0/epoch", "4"), ("/unlogged", "2")])]);
}

#[test]
fn verifications_hash_the_log_too() {
    let program = with_log();
    let log = "Log entries verified: 0. All hash to the roots of their epochs.\n";
    let books = "Accounts verified: 1. Everything adds up exactly.\n";
    assert_eq!(program.run("log verify").success(), log);
    assert_eq!(program.run("verify").success(), format!("{books}{log}"));
    program.tamper("UPDATE log_epoch SET root = zeroblob(32)");
    program.refuses(&[("log verify", 3, "the log has"), ("verify", 3, "the log has")]);
    let ran = program.run("verify --json").expect(3);
    assert_eq!(ran.json::<Value>()["discrepancies"], Value::Array(Vec::new()));
    assert_ne!(ran.json::<Value>()["log_faults"], Value::Array(Vec::new()));
}

/// Appends 600 entries of three days, 256 a day, as a sequencer does.
async fn append(store: &dyn LogStore) {
    let day = |day: i64| Timestamp::from_unix_millis(day * 86_400_000);
    let epoch = store.claim_log("node", Duration::from_secs(9), day(0)).await.unwrap().unwrap();
    let bundle = |index: u64, at: Timestamp| StoredBundle { index, until: at, hash: None, leaves: vec![1] };
    let step = LogStep {
        epoch: 1,
        node: "node".to_owned(),
        from: 0,
        size: 600,
        root: [1; 32],
        bundles: vec![bundle(0, day(1)), bundle(1, day(2)), bundle(2, day(3))],
        tiles: Vec::new(),
        accounts: Vec::new(),
        lines: Vec::new(),
        taken: epoch.taken,
        batches: Vec::new(),
        swept: Vec::new(),
        swept_from: Some(600),
    };
    assert!(store.append_log(step).await.unwrap());
}

#[test]
fn old_entries_are_pruned_and_the_newest_stay() {
    let program = with_log();
    block_on(async { append(&*program.store()).await });
    let would = "Would delete 256 entries of example.com/api/log/1; the first one that stays is 256.\n";
    assert_eq!(program.run("log prune --before 1970-01-03 --dry-run").success(), would);
    program.refuses(&[
        ("log prune", 2, "--before"),
        ("log prune --before 1970-01-03", 2, "add --yes"),
        ("log prune --before yesterday", 2, "--before"),
    ]);
    program.documents(&[("log status", &[("/epochs/0/first_entry", "0")])]);
    let nothing = "The log has nothing from before 1970-01-02 that can be deleted.\n";
    assert_eq!(program.run("log prune --before 1970-01-02").success(), nothing);
    let prune = "log prune --before 1970-01-03 --yes";
    assert_eq!(program.run(prune).success(), would.replace("Would delete", "Deleted"));
    program.documents(&[
        (prune, &[("/pruned", "[]")]),
        // The last 88 entries are the end of the tree.
        ("log prune --before 2099-01-01 --yes", &[("/pruned/0/entries", "256"), ("/pruned/0/first_entry", "512")]),
        ("log status", &[("/epochs/0/first_entry", "512"), ("/epochs/0/entries", "600")]),
        ("audit", &[("/entries/0/action", "\"log.prune\"")]),
    ]);
}
