//! The log of every posting, from outside: the command line and another implementation of RFC 6962 accept what a server
//! publishes, and after a kill it continues.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ct_merkle::InclusionProof;
use ct_merkle::mem_backed_tree::MemoryBackedTree;
use metering_core::{Clock, SystemClock};
use metering_tests::posting_log::PostingLog;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::upstream::{Upstream, catalogue};
use crate::support::wait::until;

/// What an audit with the command line reports.
#[track_caller]
fn audited(log: &PostingLog, server: &Server) -> Value {
    let audit = log.audit(server.address());
    assert_eq!(audit.code, Some(0), "{audit:?}");
    serde_json::from_str(&audit.stdout).unwrap()
}

/// Size and root of a checkpoint.
fn head(checkpoint: &str) -> (u64, &str) {
    let lines: Vec<_> = checkpoint.lines().collect();
    (lines[1].parse().unwrap(), lines[2])
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

/// The tree of a log with fewer than 256 entries, as another implementation builds it from what the server publishes.
fn tree(server: &Server, size: u64) -> MemoryBackedTree<Sha256, Vec<u8>> {
    let bundle = server.client().get(&format!("/log/1/tile/entries/000.p/{size}")).expect(200).body;
    let (mut tree, mut rest) = (MemoryBackedTree::new(), bundle.as_slice());
    while let Some((length, entries)) = rest.split_first_chunk::<2>() {
        let (entry, more) = entries.split_at(u16::from_be_bytes(*length).into());
        tree.push(entry.to_vec());
        rest = more;
    }
    tree
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
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("2");
    let log = PostingLog::begin(&site);
    let start = || log.serve(site.server()).args(["--upstream", &upstream.url()]).args(catalogue(&site)).start();
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
    let (size, root) = head(&checkpoint);
    assert_eq!((&first["entries"], &first["new_entries"]), (&size.into(), &size.into()));

    // Another implementation computes the same root, and finds each line of the statement in the tree.
    let tree = tree(&server, size);
    assert_eq!((tree.len(), STANDARD.encode(tree.root().as_bytes()).as_str()), (size, root));
    let today = SystemClock.now().day();
    let statement = server.client_with(&account.api_key).get(&format!("/statements/{today}")).expect(200);
    let document = statement.json();
    assert_eq!(head(document["checkpoint"].as_str().unwrap()), (size, root));
    let lines = document["lines"].as_array().unwrap();
    for line in lines {
        let committed = Sha256::new()
            .chain_update(b"metering-leaf-v1\0")
            .chain_update(decoded(line, "salt"))
            .chain_update(decoded(line, "opening"))
            .finalize();
        let (entry, path) = (committed.to_vec(), InclusionProof::from_bytes(decoded(line, "path")));
        tree.root().verify_inclusion(&entry, line["position"].as_u64().unwrap(), &path).unwrap();
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
    until("the log continues", || published(&server).is_some_and(|checkpoint| head(&checkpoint).0 > size));
    let next = audited(&log, &server);
    assert_eq!(next["entries"].as_u64().unwrap() - size, next["new_entries"].as_u64().unwrap());
    site.verify();
}
