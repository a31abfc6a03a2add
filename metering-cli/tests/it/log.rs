//! `metering log` against a stand-in for a log: growth, forks, rewritten entries and rollbacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use metering_log::checkpoint::{Checkpoint, Policy, SignedCheckpoint};
use metering_log::keys::PrivateKey;
use metering_log::note::{Cosigner, KeyName, NoteSigner};
use metering_log::tree::{BuiltTile, LogPath, Tile, TreeBuilder, TreeHash, push_entry, tile_bytes};
use serde_json::Value;

use crate::program::Program;
use crate::stand_in::{Reply, StandIn};

const ORIGIN: &str = "example.com/log";
const AUDIT: &str = "log audit $url --log-key $logkey --keep kept";
const WITNESS: &str =
    "log witness $url --log-key $logkey --name example.org/witness --key witness.pem --keep witnessed";

type Files = HashMap<String, Vec<u8>>;

fn signer() -> NoteSigner {
    NoteSigner::new(KeyName::new(ORIGIN).unwrap(), PrivateKey::from_seed(&[1; 32]))
}

fn witness() -> Cosigner {
    Cosigner::new(KeyName::new("example.org/witness").unwrap(), PrivateKey::from_seed(&[2; 32]))
}

/// What a log of this many entries serves. Two histories differ from entry 200 on.
fn served(history: &str, size: u64) -> Files {
    let (mut tree, mut files) = (TreeBuilder::new(), Files::new());
    let keep = |files: &mut Files, built: BuiltTile| {
        files.insert(LogPath::Tile(built.tile).to_string(), tile_bytes(&built.hashes));
    };
    for index in 0..size {
        let entry = format!("{}{index}", if index < 200 { "" } else { history });
        let tile = Tile::in_tree(0, index / 256, size).unwrap();
        push_entry(files.entry(LogPath::Entries(tile).to_string()).or_default(), entry.as_bytes()).unwrap();
        tree.append(TreeHash::leaf(entry.as_bytes())).into_iter().for_each(|built| keep(&mut files, built));
    }
    tree.partial_tiles().for_each(|built| keep(&mut files, built));
    let checkpoint = Checkpoint::new(ORIGIN, size, tree.root()).unwrap();
    let signed = SignedCheckpoint::sign(checkpoint, &signer()).unwrap().to_string();
    files.insert(LogPath::Checkpoint.to_string(), signed.into_bytes());
    files
}

/// The program and a log, whose files the test replaces.
fn log(files: Files) -> (Program, StandIn, Arc<Mutex<Files>>) {
    let files = Arc::new(Mutex::new(files));
    let shared = Arc::clone(&files);
    let service = StandIn::serving(move |request| {
        let body = request.path().strip_prefix("/log/").and_then(|path| shared.lock().unwrap().get(path).cloned());
        body.map_or_else(|| Reply::new(404, "not found"), Reply::ok)
    });
    let program = Program::new();
    program.call("url", format!("{}/log/", service.url()));
    program.call("logkey", signer().verifier().to_string());
    program.call("witnesskey", witness().verifier().to_string());
    program.write("witness.pem", PrivateKey::from_seed(&[2; 32]).to_pem().unwrap().as_bytes());
    #[cfg(unix)]
    std::fs::set_permissions(program.path("witness.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    (program, service, files)
}

#[test]
fn growth_passes_an_audit_that_reads_only_what_is_new() {
    let (program, service, files) = log(served("a", 300));
    let report: Value = program.json(AUDIT);
    assert_eq!((&report["entries"], &report["new_entries"]), (&300.into(), &300.into()));
    // Partial tiles of the old size are gone.
    *files.lock().unwrap() = served("a", 600);
    let before = service.requests().len();
    let report: Value = program.json(AUDIT);
    assert_eq!((&report["entries"], &report["new_entries"]), (&600.into(), &300.into()));
    let targets = service.targets().split_off(before);
    assert!(!targets.iter().any(|target| target.contains("entries/000")), "{targets:?}");
    program.prints(&[(AUDIT, &["Log", ORIGIN, "Entries      600", "New          0", "Cosigned by  nobody"])]);
}

#[test]
fn audits_find_what_a_log_changed() {
    let (program, _service, files) = log(served("a", 300));
    let _ = program.run(AUDIT).success();
    let kept = program.read("kept");
    for (now, expected, evidence) in [
        (served("b", 300), "forked or rewritten", "kept.evidence"),
        (served("b", 700), "forked or rewritten", "kept.evidence2"),
        (served("a", 200), "went back", "kept.evidence3"),
        // What is there already stays, and is not written again.
        (served("b", 300), "forked or rewritten", "kept.evidence"),
    ] {
        *files.lock().unwrap() = now;
        let message = program.run(AUDIT).failure(3);
        assert!(message.contains(expected), "{message}");
        assert_eq!(program.read("kept"), kept, "the last good checkpoint stays");
        assert_eq!(program.read(evidence).as_bytes(), files.lock().unwrap()["checkpoint"]);
    }
    assert!(!program.path("kept.evidence4").exists());
}

#[test]
fn audits_go_on_only_from_what_the_log_signed_and_follow_no_redirects() {
    let (program, service, _files) = log(served("a", 5));
    program.write("kept", "example.com/log\n5\n");
    program.refuses(&[(AUDIT, 1, "cannot continue from kept")]);
    program.write("kept", "");
    program.refuses(&[(AUDIT, 1, "cannot continue from kept")]);
    service.on("/log/checkpoint", Reply::new(302, "").header("location", "/elsewhere/checkpoint"));
    program.refuses(&[("log audit $url --log-key $logkey", 1, "redirects")]);
    // A tile of 256 hashes has 8192 bytes.
    service.on("/log/tile/0/000.p/5", Reply::ok(vec![0; 9_000]));
    program.refuses(&[("log audit $url --log-key $logkey", 3, "too long")]);
}

#[test]
fn audits_find_resources_that_do_not_belong_together() {
    let (program, _service, files) = log(served("a", 600));
    let other = served("b", 600);
    for (path, expected) in [
        ("tile/entries/000", "entry 200 was changed"),
        ("tile/0/001", "entry 256 was changed"),
        ("tile/1/000.p/2", "tile/1/000.p/2"),
    ] {
        let mut damaged = served("a", 600);
        damaged.insert(path.to_owned(), other[path].clone());
        *files.lock().unwrap() = damaged;
        let message = program.run("log audit $url --log-key $logkey").failure(3);
        assert!(message.contains(expected), "{path}: {message}");
    }
    files.lock().unwrap().remove("tile/entries/001");
    assert!(program.run("log audit $url --log-key $logkey").failure(4).contains("pruned"));
}

#[test]
fn audits_need_the_signatures_that_are_asked_for() {
    let (program, _service, files) = log(served("a", 5));
    program.refuses(&[
        ("log audit $url --log-key $witnesskey", 2, "key of a witness"),
        ("log audit $url --log-key $logkey --witness $logkey", 2, "key of a log"),
        ("log audit $url --log-key $logkey --witness $witnesskey --quorum 2", 2, "only 1"),
        ("log audit $url --log-key $logkey --origin example.com/other", 3, "example.com/other"),
        ("log audit $url --log-key $logkey --witness $witnesskey", 3, "1 are needed"),
        ("log audit $url/elsewhere --log-key $logkey", 4, "no checkpoint"),
    ]);
    let cosigned = program.run(WITNESS).expect(0).stdout;
    files.lock().unwrap().insert("checkpoint".to_owned(), cosigned.into_bytes());
    let audit = "log audit $url --log-key $logkey --witness $witnesskey";
    program.prints(&[(audit, &["Cosigned by  example.org/witness"])]);
}

#[test]
fn witnesses_cosign_growth_and_refuse_forks() {
    let (program, _service, files) = log(served("a", 300));
    let policy = Policy::new(ORIGIN, vec![signer().verifier().clone()]);
    let policy = policy.with_witnesses(vec![witness().verifier().clone()], 1);
    for (size, is_first) in [(300, true), (300, false), (600, false)] {
        *files.lock().unwrap() = served("a", size);
        let ran = program.run(WITNESS).expect(0);
        assert_eq!(policy.open(&ran.stdout).unwrap().checkpoint.size(), size);
        assert_eq!(ran.stderr.contains(&witness().verifier().to_string()), is_first, "{ran:?}");
    }
    let kept = format!("witnessed/{}", metering_log::witness::checkpoint_path(ORIGIN));
    let last = program.read(&kept);
    for fork in [served("b", 600), served("b", 700), served("a", 300)] {
        *files.lock().unwrap() = fork;
        let message = program.run(WITNESS).failure(3);
        assert!(message.contains("not cosigned"), "{message}");
        assert_eq!(program.read(&kept), last);
    }
}
