//! `metering log`: audits of a stand-in for a log, and a witness that logs submit to. Both meet growth, forks and rollbacks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use metering_log::checkpoint::{Checkpoint, Policy, SignedCheckpoint};
use metering_log::keys::PrivateKey;
use metering_log::note::{Cosigner, KeyName, NoteSigner};
use metering_log::tree::{
    BuiltTile, Leaves, LogPath, Tile, TreeBuilder, TreeHash, consistency_proof, push_entry, read_root, tile_bytes,
};
use metering_log::witness::{AddCheckpoint, checkpoint_path};
use metering_tests::response::Response;
use metering_tests::server::{Server, ServerSetup};
use serde_json::Value;

use crate::program::Program;
use crate::stand_in::{Reply, StandIn};

const ORIGIN: &str = "example.com/log";
const AUDIT: &str = "log audit $url --log-key $logkey --keep kept";
const WITNESS: &str = "log witness --listen 127.0.0.1:0 --log-key $logkey --log-key $otherkey \
    --name example.org/witness --key witness.pem --keep witnessed";
/// Another log that the witness follows.
const OTHER_ORIGIN: &str = "example.com/other";

type Files = HashMap<String, Vec<u8>>;

fn signer() -> NoteSigner {
    signer_of(ORIGIN)
}

fn signer_of(origin: &str) -> NoteSigner {
    NoteSigner::new(KeyName::new(origin).unwrap(), PrivateKey::from_seed(&[1; 32]))
}

fn witness() -> Cosigner {
    Cosigner::new(KeyName::new("example.org/witness").unwrap(), PrivateKey::from_seed(&[2; 32]))
}

/// Two histories differ from entry 200 on.
fn entry(history: &str, index: u64) -> String {
    format!("{}{index}", if index < 200 { "" } else { history })
}

/// What a log of this many entries serves.
fn served(history: &str, size: u64) -> Files {
    let (mut tree, mut files) = (TreeBuilder::new(), Files::new());
    let keep = |files: &mut Files, built: BuiltTile| {
        files.insert(LogPath::Tile(built.tile).to_string(), tile_bytes(&built.hashes));
    };
    for index in 0..size {
        let entry = entry(history, index);
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
    let program = program();
    program.call("url", format!("{}/log/", service.url()));
    (program, service, files)
}

/// The program with the keys of logs and witness.
fn program() -> Program {
    let program = Program::new();
    program.call("logkey", signer().verifier().to_string());
    program.call("otherkey", signer_of(OTHER_ORIGIN).verifier().to_string());
    program.call("witnesskey", witness().verifier().to_string());
    program.write("witness.pem", PrivateKey::from_seed(&[2; 32]).to_pem().unwrap().as_bytes());
    #[cfg(unix)]
    std::fs::set_permissions(program.path("witness.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    program
}

/// What a log submits to a witness that cosigned this many entries before.
fn submission(origin: &str, history: &str, old_size: u64, size: u64) -> AddCheckpoint {
    let leaves: Vec<_> = (0..size).map(|index| TreeHash::leaf(entry(history, index).as_bytes())).collect();
    let root = read_root(&Leaves(&leaves), size).unwrap();
    let checkpoint = Checkpoint::new(origin, size, root).unwrap();
    let checkpoint = SignedCheckpoint::sign(checkpoint, &signer_of(origin)).unwrap();
    AddCheckpoint { old_size, proof: consistency_proof(&Leaves(&leaves), old_size, size).unwrap(), checkpoint }
}

fn start_witness(program: &Program) -> Server {
    ServerSetup::of_command(program.command(WITNESS)).start()
}

fn submit(witness: &Server, body: &str) -> Response {
    witness.client().send("POST", "/add-checkpoint", Some(body.as_bytes()))
}

/// Submits what must be cosigned.
#[track_caller]
fn cosigned(witness: &Server, submission: &AddCheckpoint) {
    let response = submit(witness, &submission.to_string()).expect(200);
    let checkpoint = submission.checkpoint.checkpoint();
    let note = format!("{}{}", submission.checkpoint, response.text());
    assert_eq!(required(checkpoint.origin()).open(&note).unwrap().checkpoint.root(), checkpoint.root());
}

/// Trusts what log and witness signed.
fn required(origin: &str) -> Policy {
    let log = Policy::new(origin, vec![signer_of(origin).verifier().clone()]);
    log.with_witnesses(vec![witness().verifier().clone()], 1)
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
        (served("a", 200), "rolled back", "kept.evidence3"),
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
    let mut checkpoint = submission(ORIGIN, "a", 0, 5).checkpoint;
    let cosignature = witness().cosign(checkpoint.note().text(), 1_796_000_000);
    checkpoint.note_mut().add(cosignature);
    files.lock().unwrap().insert("checkpoint".to_owned(), checkpoint.to_string().into_bytes());
    let audit = "log audit $url --log-key $logkey --witness $witnesskey";
    program.prints(&[(audit, &["Cosigned by  example.org/witness"])]);
}

/// Signs the checkpoint of these files again, with other keys.
fn sign_again(files: &mut Files, keys: &[&NoteSigner]) {
    let text = String::from_utf8(files["checkpoint"].clone()).unwrap();
    let checkpoint = text.parse::<SignedCheckpoint>().unwrap().checkpoint().clone();
    let mut signed = SignedCheckpoint::sign(checkpoint, keys[0]).unwrap();
    keys[1..].iter().for_each(|key| signed.also_sign(key));
    files.insert("checkpoint".to_owned(), signed.to_string().into_bytes());
}

#[test]
fn during_a_rotation_either_key_passes_an_audit() {
    let (program, _service, files) = log(served("a", 300));
    let new = NoteSigner::new(KeyName::new(ORIGIN).unwrap(), PrivateKey::from_seed(&[3; 32]));
    let unknown = NoteSigner::new(KeyName::new(ORIGIN).unwrap(), PrivateKey::from_seed(&[4; 32]));
    program.call("newkey", new.verifier().to_string());
    program.call("unknownkey", unknown.verifier().to_string());
    let with = |keys: &str| format!("log audit $url --keep kept {keys}");
    let (old_only, new_only) = (with("--log-key $logkey"), with("--log-key $newkey"));
    let either = with("--log-key $logkey --log-key $newkey");
    for keys in [&[&signer(), &new][..], &[&new, &signer()]] {
        sign_again(&mut files.lock().unwrap(), keys);
        for audit in [&old_only, &new_only, &either] {
            let _ = program.run(audit).success();
        }
        let message = program.run("log audit $url --log-key $unknownkey").failure(3);
        assert!(message.contains("not signed"), "{message}");
    }
    // The old key no longer signs: what was kept while both did leads on.
    let mut grown = served("a", 600);
    sign_again(&mut grown, &[&new]);
    *files.lock().unwrap() = grown;
    assert!(program.run(&old_only).failure(3).contains("not signed"));
    let report: Value = program.json(&new_only);
    assert_eq!((&report["entries"], &report["new_entries"]), (&600.into(), &300.into()));
    // One of two known keys is enough.
    let _ = program.run(&either).success();
}

#[test]
fn witnesses_cosign_growth_and_go_on_from_there_after_a_restart() {
    let program = program();
    let witness_runs = start_witness(&program);
    assert!(witness_runs.log().contains(&witness().verifier().to_string()), "{}", witness_runs.log());
    let monitored = format!("/{}", checkpoint_path(ORIGIN));
    let _ = witness_runs.client().get(&monitored).expect(404);
    for (old_size, size) in [(0, 300), (300, 300), (300, 600)] {
        cosigned(&witness_runs, &submission(ORIGIN, "a", old_size, size));
    }
    cosigned(&witness_runs, &submission(OTHER_ORIGIN, "b", 0, 5));
    // Two processes could cosign a fork.
    program.refuses(&[(WITNESS, 8, "another witness is using witnessed")]);

    witness_runs.kill();
    let witness_runs = start_witness(&program);
    let kept = witness_runs.client().get(&monitored).expect(200).text();
    assert_eq!(required(ORIGIN).open(&kept).unwrap().checkpoint.size(), 600);
    let conflict = submit(&witness_runs, &submission(ORIGIN, "a", 0, 700).to_string()).expect(409);
    assert_eq!((conflict.header("content-type"), conflict.text().as_str()), (Some("text/x.tlog.size"), "600\n"));
    cosigned(&witness_runs, &submission(ORIGIN, "a", 600, 700));
    cosigned(&witness_runs, &submission(OTHER_ORIGIN, "b", 5, 5));
}

#[test]
fn witnesses_refuse_forks_and_what_they_cannot_use() {
    let program = program();
    let witness = start_witness(&program);
    cosigned(&witness, &submission(ORIGIN, "a", 0, 600));
    let kept = format!("witnessed/{}", checkpoint_path(ORIGIN));
    let last = program.read(&kept);
    let grown = submission(ORIGIN, "a", 600, 700).to_string();
    for (body, status, expected) in [
        (submission(ORIGIN, "b", 0, 700).to_string(), 409, "600"),
        (submission(ORIGIN, "b", 600, 700).to_string(), 422, "does not continue"),
        (submission(ORIGIN, "b", 600, 600).to_string(), 422, "does not continue"),
        (submission(ORIGIN, "a", 300, 300).to_string(), 409, "600"),
        (grown.replace("old 600", "old 800"), 400, "bad request"),
        ("old 0\n".to_owned(), 400, "bad request"),
        (grown.replace("\u{2014} example.com/log ", "\u{2014} example.com/unknown "), 403, "not signed"),
        (submission("example.com/third", "a", 0, 5).to_string(), 404, "does not follow"),
        ("x".repeat(65_537), 413, "65536 bytes"),
    ] {
        let response = submit(&witness, &body);
        assert_eq!(response.status, status, "{body}: {response:?}");
        assert!(response.text().contains(expected), "{response:?}");
        assert_eq!(program.read(&kept), last);
    }
    let _ = witness.client().get("/add-checkpoint").expect(405);
    let _ = witness.client().get("/elsewhere").expect(404);
    cosigned(&witness, &submission(ORIGIN, "a", 600, 700));
}

#[test]
fn of_two_checkpoints_at_once_a_witness_cosigns_one() {
    let program = program();
    let witness = &start_witness(&program);
    let forks = ["a", "b"].map(|history| submission(ORIGIN, history, 0, 300).to_string());
    let statuses = std::thread::scope(|scope| {
        let sent = forks.each_ref().map(|fork| scope.spawn(move || submit(witness, fork).status));
        sent.map(|status| status.join().unwrap())
    });
    assert!(matches!(statuses, [200, 409] | [409, 200]), "{statuses:?}");
}

#[test]
fn witnesses_do_not_start_from_what_they_cannot_trust() {
    let program = program();
    let other = WITNESS.replace("$otherkey", "$witnesskey");
    program.write(&format!("witnessed/{}", checkpoint_path(ORIGIN)), "damaged");
    program.refuses(&[(other.as_str(), 2, "key of a witness"), (WITNESS, 1, "use another key")]);
}
