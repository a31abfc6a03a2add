//! The chains' configuration: missing, wrong, or for another chain than the one that responds.

use super::scene::{assign, configuration, records, scene, url};
use crate::admin::failed;
use crate::node::{Chain, SECRET};
use crate::program::Program;
use crate::stand_in::StandIn;

const LIST: &str = "payments list --config metering.toml";

fn rewrite(program: &Program, node: &StandIn, from: &str, to: &str) {
    let text = configuration(node);
    assert!(text.contains(from), "{from}");
    program.write("metering.toml", text.replace(from, to));
}

/// Both commands that read the chain fail with this message, without a secret.
#[track_caller]
fn both_refuse(program: &Program, code: i32, expected: &str) {
    for line in [format!("{LIST} --chain base"), assign("UNKNOWN", "--plan starter")] {
        let message = failed(program.run(&line), code);
        assert!(message.contains(expected) && !message.contains(SECRET), "{expected}: {message}");
    }
    assert_eq!(records(program), 1);
}

#[test]
fn missing_or_invalid_configuration_is_named() {
    let (program, node) = scene();
    // what is replaced, with what, exit code, what the message contains
    for (from, to, code, expected) in [
        ("[chains.base]", "[chains.other]", 4, "no chain base in metering.toml; it has other, quiet"),
        ("rpc_urls", "name = 5\nrpc_url", 1, "chains.base"),
        ("attempts = 1", "attempts = 0", 1, "chains.base.attempts"),
        ("attempts = 1", "attempts =", 1, "in metering.toml"),
        ("chain_id = 8453", "chain_id = 0", 1, "chains.base.chain_id"),
    ] {
        rewrite(&program, &node, from, to);
        both_refuse(&program, code, expected);
    }
    std::fs::remove_file(program.path("metering.toml")).unwrap();
    both_refuse(&program, 1, "cannot read the configuration");
    both_refuse(&program, 1, "metering.toml");
    program.refuses(&[("payments list", 2, "--config")]);
}

#[test]
fn a_chain_without_rpc_urls_cannot_be_read() {
    let (program, node) = scene();
    program.refuses(&[(&format!("{LIST} --chain quiet"), 1, "METERING_CHAINS__QUIET__RPC_URLS")]);
    rewrite(&program, &node, &format!("rpc_urls = [\"{}\"]\n", url(&node)), "");
    both_refuse(&program, 1, "set rpc_urls");
    program.refuses(&[(LIST, 1, "no chain in metering.toml has rpc_urls")]);
    // A variable wins over the file.
    rewrite(&program, &node, &url(&node), "http://127.0.0.1:1");
    let url = url(&node);
    let variable = [("METERING_CHAINS__BASE__RPC_URLS", url.as_str())];
    let ran = program.run_with(&variable, &format!("{LIST} --chain base"));
    assert!(ran.success().contains(&program.text("$UNKNOWN")));
}

#[test]
fn wrong_or_silent_chain_changes_nothing() {
    let (program, node) = scene();
    let other = Chain { id: 1, newest: 100, ..Chain::default() }.serve();
    rewrite(&program, &node, &url(&node), &url(&other));
    both_refuse(&program, 1, "the RPC serves chain 1, not chain 8453");
    let closed = format!("{}/{SECRET}", crate::stand_in::closed_url());
    rewrite(&program, &node, &url(&node), &closed);
    both_refuse(&program, 1, "cannot read chain base");
}

#[test]
fn block_numbers_are_of_one_chain() {
    let (program, node) = scene();
    let other = Chain { id: 1, newest: 100, ..Chain::default() }.serve();
    let line = "[chains.quiet]\nchain_id = 1\n";
    rewrite(&program, &node, line, &format!("{line}rpc_urls = \"{}\"\n", url(&other)));
    program.refuses(&[(&format!("{LIST} --from-block 5"), 2, "--chain")]);
    program.documents(&[(LIST, &[("/scanned/1/chain", "\"quiet\"")])]);
    program.run(&format!("{LIST} --chain quiet --from-block 5")).success();
}
