//! What is wrong is found and explained; nothing is changed.

use serde_json::Value;

use crate::node::{Chain, SECRET, address};
use crate::program::{Program, RunOutput};

/// What the doctor found: its exit code, and its findings as `CHECK STATE FOUND`.
struct Examined {
    code: i32,
    findings: Vec<(String, String, String)>,
}

/// Runs the doctor with this configuration.
fn examine(program: &Program, configuration: &str) -> Examined {
    program.write("metering.toml", configuration);
    let ran: RunOutput = program.run("--config metering.toml doctor --json");
    let document: Value = serde_json::from_str(&ran.stdout).unwrap();
    let of = |finding: &Value| ["check", "state", "found"].map(|name| finding[name].as_str().unwrap().to_owned());
    let findings = document["findings"].as_array().unwrap().iter().map(|finding| of(finding).into()).collect();
    Examined { code: ran.code, findings }
}

impl Examined {
    fn of(&self, check: &str) -> Vec<(&str, &str)> {
        let of_check = self.findings.iter().filter(|(name, ..)| name == check);
        of_check.map(|(_, state, found)| (state.as_str(), found.as_str())).collect()
    }

    /// Asserts the exit code, and that the first finding of a check has this state and contains this.
    #[track_caller]
    fn expect(&self, code: i32, check: &str, state: &str, text: &str) {
        let found = self.of(check);
        let first = found.first().unwrap_or_else(|| panic!("{:?}", self.findings));
        assert_eq!((self.code, first.0), (code, state), "{:?}", self.findings);
        assert!(first.1.contains(text), "{:?}", self.findings);
    }

    /// The states of a check.
    fn states(&self, check: &str) -> Vec<&str> {
        self.of(check).into_iter().map(|(state, _)| state).collect()
    }
}

#[test]
fn sound_installation_has_no_warnings() {
    let (program, _) = Program::with_account();
    let examined = examine(&program, "");
    let bad: Vec<_> = examined.findings.iter().filter(|(check, state, _)| check != "disk" && state != "ok").collect();
    assert_eq!((examined.code, bad), (0, vec![]));
    assert_eq!((examined.states("store"), examined.states("topup")), (vec!["ok"], vec![]));
    program.prints(&[("doctor --offline", &["ok       store: sqlite:"])]);
}

#[test]
fn unusable_configuration_and_catalogue_are_explained() {
    let program = Program::without_store();
    let examined = examine(&program, "[http]\nmax_body_bites = 1");
    assert_eq!((examined.code, examined.findings.len()), (1, 1), "{:?}", examined.findings);
    assert!(examined.findings[0].2.contains("http.max_body_bites"), "{:?}", examined.findings);
    program.write("routes.json", "{}");
    examine(&program, "catalogue = 'routes.json'").expect(1, "catalogue", "problem", "");
    program.refuses(&[("doctor --server http://127.0.0.1:9", 2, "--config")]);
}

#[test]
fn store_of_a_newer_version_and_damaged_file_are_problems() {
    let (program, _) = Program::with_account();
    let file = || rusqlite::Connection::open(program.database()).unwrap();
    // version, exit code, state, what is found
    for (version, code, state, text) in [(1_000, 1, "problem", "schema 1000"), (3, 0, "warning", "migrates it")] {
        file().pragma_update(None, "user_version", version).unwrap();
        examine(&program, "").expect(code, "store", state, text);
        let left: i64 = file().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(left, version, "it was not migrated");
    }
    std::fs::write(program.database(), "not a database, and long enough to be read as one of its pages").unwrap();
    examine(&program, "").expect(1, "store", "problem", "");
}

#[test]
fn secrets_that_everyone_can_read_are_noticed_and_not_printed() {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    let program = Program::without_store();
    let secret = "a secret of thirty characters!";
    program.write("metering.toml", "");
    for (mode, states) in [(0o644, &["warning", "ok"][..]), (0o600, &["ok"])] {
        set_permissions(program.path("metering.toml"), Permissions::from_mode(mode)).unwrap();
        let examined = examine(&program, &format!("[billing]\ninternal_secret = '{secret}'"));
        assert_eq!(examined.states("permissions"), states);
        assert!(!format!("{:?}", examined.findings).contains(secret));
    }
    examine(&program, "[pay]\nmpp_secret_file = 'none'").expect(1, "permissions", "problem", "none: ");
}

#[test]
fn unreachable_wrong_and_stalled_chains_are_reported() {
    let program = Program::without_store();
    let with = |urls: &str| {
        let section = format!("[chains.base]\nchain_id = 8453\nrecipient = '{}'\nattempts = 1\n", address(7));
        examine(&program, &format!("{section}rpc_urls = [{urls}]"))
    };
    let node = |id, newest, takes| Chain { id, newest, takes, ..Chain::default() }.serve();
    let at = |node: &crate::stand_in::StandIn| format!("'{}/v2/{SECRET}'", node.url());
    with("'http://127.0.0.1:9'").expect(1, "chain", "problem", "127.0.0.1:9");
    let (wrong, old) = (node(1, 500, None), node(8453, 500, None));
    with(&at(&wrong)).expect(1, "chain", "problem", "");
    // Its newest block is from long ago.
    with(&at(&old)).expect(1, "chain", "problem", "block, 500, is ");
    assert_eq!(with("").states("chain")[0], "warning");

    // One that takes less at once than the server sends is named by its host.
    let limited = node(8453, 5_000, Some((3, 700)));
    let examined = with(&at(&limited));
    let chain = examined.of("chain");
    let warned = |words: &str| chain.iter().any(|(state, found)| *state == "warning" && found.contains(words));
    assert!(warned("blocks in one search for logs") && warned("batches of 2 calls at most"), "{chain:?}");
    let host = limited.url().replace("http://", "");
    assert!(chain.iter().all(|(_, found)| found.contains(&host) && !found.contains(SECRET)), "{chain:?}");
}

#[test]
fn proof_of_payers_is_named_where_accounts_were_imported() {
    let (program, _) = Program::with_account();
    let hash = "ab".repeat(32);
    let account = format!(
        r#"{{"agent_name":"moved","key_hash":"{hash}","hash_kind":"sha256","credit_balance":1,"total_credits_granted":1}}"#
    );
    program.write("accounts.jsonl", account);
    program.run("import --from accounts.jsonl --format accounts").success();
    for (configuration, state) in [("", "ok"), ("[topup]\nrequire_payer_proof = false", "warning")] {
        let examined = examine(&program, configuration);
        assert_eq!(examined.states("topup"), [state]);
        assert!(examined.of("topup")[0].1.contains("topup.require_payer_proof"));
    }
}
