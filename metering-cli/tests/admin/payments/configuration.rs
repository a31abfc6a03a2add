//! The chains' configuration: missing, wrong, or for another chain than the one that responds.

use std::fs;

use super::scene::{CHAIN_ID, Scene, UNKNOWN, configuration};
use crate::fixture::RunOutput;
use crate::node::{Chain, Node, SECRET, hash};

fn rewrite(scene: &Scene, from: &str, to: &str) {
    let text = configuration(&scene.node.url());
    assert!(text.contains(from), "{from}");
    fs::write(scene.fixture.path("metering.toml"), text.replace(from, to)).unwrap();
}

/// Both commands that read the chain.
fn both(scene: &Scene) -> [RunOutput; 2] {
    let list = scene.payments("list", &["--chain", "base"]);
    [list, scene.assign(UNKNOWN, &scene.owner, &["--plan", "starter"])]
}

#[test]
fn missing_or_invalid_configuration_is_named() {
    let scene = Scene::new();
    // what is replaced, with what, exit code, what the message contains
    let table = [
        ("[chains.base]", "[chains.other]", 4, "no chain base in metering.toml; it has other, quiet"),
        ("rpc_urls", "name = 5\nrpc_url", 1, "chains.base"),
        ("attempts = 1", "attempts = 0", 1, "chains.base.attempts"),
        ("attempts = 1", "attempts =", 1, "in metering.toml"),
        ("chain_id = 8453", "chain_id = 0", 1, "chains.base.chain_id"),
    ];
    for (from, to, code, expected) in table {
        rewrite(&scene, from, to);
        for ran in both(&scene) {
            let message = ran.failure(code);
            assert!(message.contains(expected), "{to}: {message}");
            assert!(!message.contains(SECRET), "{message}");
        }
    }
    fs::remove_file(scene.fixture.path("metering.toml")).unwrap();
    for ran in both(&scene) {
        let message = ran.failure(1);
        assert!(message.contains("cannot read the configuration") && message.contains("metering.toml"), "{message}");
    }
    assert_eq!(scene.records().len(), 1);
    scene.fixture.admin(&["payments", "list"]).misuse();
}

#[test]
fn a_chain_without_rpc_urls_cannot_be_read() {
    let scene = Scene::new();
    let message = scene.payments("list", &["--chain", "quiet"]).failure(1);
    assert!(message.contains("METERING_CHAINS__QUIET__RPC_URLS"), "{message}");
    let line = format!("rpc_urls = [\"{}\"]\n", scene.node.url());
    rewrite(&scene, &line, "");
    for ran in both(&scene) {
        assert!(ran.failure(1).contains("set rpc_urls"));
    }
    let message = scene.payments("list", &[]).failure(1);
    assert!(message.contains("no chain in metering.toml has rpc_urls"), "{message}");
}

#[test]
fn a_variable_wins_over_the_file() {
    let scene = Scene::new();
    let line = format!("rpc_urls = [\"{}\"]", scene.node.url());
    rewrite(&scene, &line, "rpc_urls = [\"http://127.0.0.1:1\"]");
    let args = ["admin", "payments", "list", "--config", "metering.toml", "--chain", "base"];
    let mut command = scene.fixture.command(&args);
    let output = command.env("METERING_CHAINS__BASE__RPC_URLS", scene.node.url()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains(&hash(UNKNOWN)));
}

#[test]
fn wrong_or_silent_chain_changes_nothing() {
    let scene = Scene::new();
    let other = Node::start(Chain { id: 1, newest: 100, transactions: Vec::new(), takes: None });
    rewrite(&scene, &scene.node.url(), &other.url());
    for ran in both(&scene) {
        let message = ran.failure(1);
        assert!(message.contains(&format!("the RPC serves chain 1, not chain {CHAIN_ID}")), "{message}");
    }
    let dead = other.url();
    drop(other);
    rewrite(&scene, &scene.node.url(), &dead);
    for ran in both(&scene) {
        let message = ran.failure(1);
        assert!(message.contains("cannot read chain base") && !message.contains(SECRET), "{message}");
    }
    assert_eq!((scene.balance(&scene.owner).as_str(), scene.records().len()), ("0", 1));
}

#[test]
fn block_numbers_are_of_one_chain() {
    let scene = Scene::new();
    let other = Node::start(Chain { id: 1, newest: 100, transactions: Vec::new(), takes: None });
    let line = "[chains.quiet]\nchain_id = 1\n";
    rewrite(&scene, line, &format!("{line}rpc_urls = \"{}\"\n", other.url()));
    let message = scene.payments("list", &["--from-block", "5"]).failure(2);
    assert!(message.contains("--chain"), "{message}");
    let list: serde_json::Value = scene.payments("list", &["--json"]).success().json();
    assert_eq!(list["scanned"][1]["chain"], "quiet");
    scene.payments("list", &["--chain", "quiet", "--from-block", "5"]).success();
}
