//! The log of every posting, from outside: a witness cosigns what a server publishes, the command line and another
//! implementation of `tlog-tiles` and signed notes accept it, and after a kill it continues.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use metering_core::{Clock, SystemClock};
use metering_tests::posting_log::PostingLog;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;
use serde_json::Value;
use sha2::{Digest, Sha256};
use signed_note::{Note, StandardVerifier, VerifierList};
use tlog_tiles::{
    Checkpoint, Error, Tile, TileHashReader, TileReader, check_record, check_tree, prove_record, prove_tree,
    record_hash,
};

use crate::support::calendar::away_from_midnight;
use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::until;

/// The report of an audit with the command line.
#[track_caller]
fn audited(log: &PostingLog, server: &Server) -> Value {
    let audit = log.audit(server.address());
    assert_eq!(audit.code, Some(0), "{audit:?}");
    serde_json::from_str(&audit.stdout).unwrap()
}

/// A witness of the log, and the configuration of a server that publishes only what it cosigned.
#[track_caller]
fn witness(site: &Site, log: &PostingLog) -> (Server, PathBuf) {
    let key = site.path("witness.pem").display().to_string();
    let made = site.admin(&["receipt-key", "create", &key]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let mut command = log.client();
    command.args(["log", "witness", "--listen", "127.0.0.1:0", "--name", "witness.test", "--key", &key]);
    command.args(["--log-key", log.verifier_key(), "--keep"]).arg(site.path("witnessed"));
    let witness = ServerSetup::of_command(command).start();
    let printed = witness.log();
    let vkey = printed.lines().find_map(|line| line.strip_prefix("vkey ")).unwrap().trim();
    let url = format!("http://{}", witness.address());
    let config =
        format!("[log]\nrequired_witnesses = 1\n[[log.witnesses]]\nname = 'test'\nvkey = '{vkey}'\nurl = '{url}'\n");
    (witness, site.write("witnesses.toml", &config))
}

/// The contents of a checkpoint, if its signature is valid.
#[track_caller]
fn opened(log: &PostingLog, checkpoint: &str) -> Checkpoint {
    opened_with(log.verifier_key(), checkpoint).expect("the log's key signed it")
}

/// The contents of a checkpoint, if this key signed it.
fn opened_with(verifier_key: &str, checkpoint: &str) -> Option<Checkpoint> {
    let note = Note::from_bytes(checkpoint.as_bytes()).unwrap();
    let verifier = StandardVerifier::new(verifier_key).unwrap();
    note.verify(&VerifierList::new(vec![Box::new(verifier)])).ok()?;
    Some(Checkpoint::from_bytes(note.text()).unwrap())
}

/// The tiles that a server publishes.
struct PublishedTiles<'a>(&'a Server);

impl TileReader for PublishedTiles<'_> {
    fn height(&self) -> u8 {
        8
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        let client = self.0.client();
        // C2SP's paths leave out the height.
        let path = |tile: &Tile| format!("/log/1/{}", tile.path().replacen("tile/8/", "tile/", 1));
        Ok(tiles.iter().map(|tile| client.get(&path(tile)).expect(200).body).collect())
    }

    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

fn published(server: &Server) -> Option<String> {
    let response = server.client().get("/log/1/checkpoint");
    (response.status == 200).then(|| response.text())
}

/// Waits until the published checkpoint has every posting.
fn wait_until_all_is_published(site: &Site) {
    until("all postings are published", || {
        let status = site.admin_json(&["log", "status"]);
        let epoch = &status["epochs"][0];
        status["unlogged"] == 0 && epoch["published"] == epoch["entries"]
    });
}

fn decoded(line: &Value, member: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(line[member].as_str().unwrap()).unwrap()
}

/// Verifies a statement and these receipts with the command line.
#[track_caller]
fn verify(log: &PostingLog, keys: &Path, statement: &Path, receipts: &[PathBuf]) {
    let mut verify = log.client();
    verify.args(["statement", "verify", "--json", "--log-key", log.verifier_key(), "--keys"]).arg(keys).arg(statement);
    for receipt in receipts {
        verify.arg("--receipt").arg(receipt);
    }
    let output = verify.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn the_log_is_verified_without_the_service_and_continues_after_a_kill() {
    away_from_midnight();
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("2");
    let log = PostingLog::begin(&site);
    let (_witness, config) = witness(&site, &log);
    let start = || {
        let setup = log.serve(site.server()).args(["--upstream", &upstream.url()]).args(catalogue(&site));
        setup.args(["--config", config.to_str().unwrap()]).start()
    };
    let server = start();
    let asking = server.client_with(&account.api_key).with_header("Prefer", "metering-receipt");
    let receipt = |name: &str, path: &str, status: u16| {
        let response = asking.get(path).expect(status);
        site.write(name, response.header("metering-receipt").unwrap_or_else(|| panic!("no receipt for {path}")))
    };
    let receipts = [receipt("charge", "/api/echo/word", 200), receipt("refund", "/api/status/503", 503)];
    let _ = site.admin_json(&["account", "grant", &account.org_id, "--credits", "1", "--note", "test"]);
    wait_until_all_is_published(&site);

    // The command line accepts the whole log.
    let first = audited(&log, &server);
    let checkpoint = published(&server).unwrap();
    assert!(checkpoint.contains("\u{2014} witness.test "), "{checkpoint}");
    let checkpoint = opened(&log, &checkpoint);
    let (size, root) = (checkpoint.size(), *checkpoint.hash());
    assert_eq!((&first["entries"], &first["new_entries"]), (&size.into(), &size.into()));

    // Another implementation finds each line of the statement in the published tiles.
    let today = SystemClock.now().day();
    let statement = server.client_with(&account.api_key).get(&format!("/statements/{today}")).expect(200);
    let document = statement.json();
    assert_eq!(opened(&log, document["checkpoint"].as_str().unwrap()), checkpoint);
    let lines = document["lines"].as_array().unwrap();
    for line in lines {
        let committed = Sha256::new()
            .chain_update(b"metering-leaf-v1\0")
            .chain_update(decoded(line, "salt"))
            .chain_update(decoded(line, "opening"))
            .finalize();
        let (tiles, position) = (PublishedTiles(&server), line["position"].as_u64().unwrap());
        let proof = prove_record(size, position, &TileHashReader::new(size, root, &tiles)).unwrap();
        check_record(&proof, size, root, position, record_hash(committed.as_slice())).unwrap();
        let path: Vec<u8> = proof.iter().flat_map(|hash| hash.0).collect();
        assert_eq!(decoded(line, "path"), path);
    }
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types[..4], ["opening", "charged", "charged", "refunded"], "{types:?}");
    assert_eq!(types.len(), 5, "and the grant");

    // So does the command line, which also finds what the receipts promise.
    let keys = site.write("keys.json", &server.client().get("/.well-known/metering-keys").expect(200).text());
    let file = site.write("statement.json", &statement.text());
    verify(&log, &keys, &file, &receipts);

    // After a kill, the log continues what was audited.
    server.kill();
    let server = start();
    let _ = server.client_with(&account.api_key).get("/api/echo/word").expect(200);
    until("the log continues", || published(&server).is_some_and(|checkpoint| opened(&log, &checkpoint).size() > size));
    let next = audited(&log, &server);
    assert_eq!(next["entries"].as_u64().unwrap() - size, next["new_entries"].as_u64().unwrap());
    let later = opened(&log, &published(&server).unwrap());
    let tiles = PublishedTiles(&server);
    let proof = prove_tree(later.size(), size, &TileHashReader::new(later.size(), *later.hash(), &tiles)).unwrap();
    check_tree(&proof, later.size(), *later.hash(), size, root).unwrap();
    site.verify();
}

/// Stops a server in order.
#[track_caller]
fn stop(mut server: Server) {
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
}

/// Clients that trust the old key or the new one accept checkpoints that both sign, with the same witness; after that,
/// clients need the new key.
#[test]
fn a_key_is_rotated_while_clients_know_either() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("2");
    let log = PostingLog::begin(&site);
    let (_witness, witnesses) = witness(&site, &log);
    let [old_file, new_file] = ["log.pem", "new.pem"].map(|name| site.path("log").join(name).display().to_string());
    let setup = || {
        let setup = log.serve(site.server()).args(["--upstream", &upstream.url()]).args(catalogue(&site));
        setup.args(["--config", witnesses.to_str().unwrap()])
    };
    let server = setup().start();
    until("the log is published", || published(&server).is_some());
    wait_until_all_is_published(&site);
    let _ = audited(&log, &server);
    stop(server);

    let rotated = site.admin_json(&["log", "rotate", &old_file, &new_file]);
    let (new, old) = (rotated["verifier_key"].as_str().unwrap(), log.verifier_key());
    assert_eq!(rotated["previous_verifier_key"], old);
    let both = setup().set("METERING_LOG__KEY_FILE", &new_file).set("METERING_LOG__PREVIOUS_KEY_FILE", &old_file);
    let server = both.start();
    // Nothing was posted: the published checkpoint gets the signature that it lacks, and keeps its cosignature.
    until("both keys sign", || published(&server).is_some_and(|checkpoint| opened_with(new, &checkpoint).is_some()));
    let checkpoint = published(&server).unwrap();
    assert_eq!(opened_with(new, &checkpoint), opened_with(old, &checkpoint));
    assert!(checkpoint.contains("\u{2014} witness.test "), "{checkpoint}");
    let keys = server.client().get("/.well-known/metering-keys").expect(200).json();
    assert_eq!((&keys["logs"][0]["vkey"], &keys["logs"][0]["previous_vkeys"]), (&new.into(), &vec![old].into()));
    let size = opened(&log, &checkpoint).size();
    let _ = server.client_with(&account.api_key).get("/api/echo/word").expect(200);
    until("the log grows", || published(&server).is_some_and(|checkpoint| opened(&log, &checkpoint).size() > size));
    let checkpoint = published(&server).unwrap();
    assert!(opened_with(new, &checkpoint).is_some() && checkpoint.contains("\u{2014} witness.test "), "{checkpoint}");
    // A client with the old key continues from what was kept, and so does one with the new key.
    let _ = audited(&log, &server);
    let url = format!("http://{}/log/1", server.address());
    let audit = |key: &str| {
        let kept = site.path("kept");
        log.client().args(["log", "audit", &url, "--log-key", key, "--keep"]).arg(kept).output().unwrap().status.code()
    };
    assert_eq!((audit(old), audit(new)), (Some(0), Some(0)));
    stop(server);

    let server = log.serve(site.server()).args(["--upstream", &upstream.url()]).args(catalogue(&site));
    let server = server.set("METERING_LOG__KEY_FILE", &new_file).start();
    let _ = server.client_with(&account.api_key).get("/api/echo/word").expect(200);
    let signed_by_new_alone = |checkpoint: String| {
        opened_with(new, &checkpoint).is_some_and(|now| now.size() > size) && opened_with(old, &checkpoint).is_none()
    };
    until("the new key signs alone", || published(&server).is_some_and(signed_by_new_alone));
    let keys = server.client().get("/.well-known/metering-keys").expect(200).json();
    assert_eq!(keys["logs"][0]["previous_vkeys"], Value::from(vec![old]), "earlier statements can be verified");
    site.verify();
}
