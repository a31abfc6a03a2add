//! The agenthub format.

use std::process::Stdio;
use std::time::Duration;

use metering_core::payments::nonce_hash;
use metering_core::store::PaymentStore;
use metering_core::{ApiKey, Store};
use metering_sqlite::SqliteStore;
use serde_json::Value;

use super::hub::{FILE, Hub};
use super::{counts, exported, oddities, report};
use crate::admin::failed;
use crate::program::Program;
use crate::store::block_on;

const IMPORT: &str = "import --from agenthub.db --format agenthub";

fn hash(number: u32) -> String {
    format!("{number:064x}")
}

/// A key as the other service makes them.
fn key() -> ApiKey {
    ApiKey::parse(&format!("sk_live_{}", "0f".repeat(48))).unwrap()
}

/// Keys whose balance drifted as sums of doubles do.
#[expect(clippy::float_arithmetic, reason = "the other service's amounts are floats, and drift")]
fn hub(program: &Program, keys: u32) {
    let hub = Hub::new(program);
    for number in 0..keys {
        let (id, mut balance, mut used) = (format!("k{number}"), 10.0, 0.0);
        hub.transaction(&id, "purchase_topup", 10.0, Some(&format!("0x{}", hash(number))));
        for _ in 0..7 {
            hub.transaction(&id, "usage", -0.1, None);
            (balance, used) = (balance - 0.1, used + 0.1);
        }
        let hash = if number == 0 { hex::encode(key().hash().as_bytes()) } else { hash(number) };
        hub.key(&id, &hash, [balance, 10.0, used]);
    }
    hub.finish();
}

#[test]
fn balances_usage_and_payments_are_equal() {
    let program = Program::without_store();
    hub(&program, 3);
    let found = report(&program, FILE, "agenthub");
    assert_eq!((counts(&found, ["equal", "unequal"]), oddities(&found)), ([3, 0], vec![]), "{found}");
    assert_eq!(found["balance_in_file"], found["balance_in_store"]);
    program.run("verify").success();
    let store = program.store();
    block_on(async {
        let account = store.account_by_key(&key().hash()).await.unwrap().unwrap();
        assert_eq!((account.agent_name.as_str(), account.limits.requests_per_minute), ("agent-k0", 60));
        assert_eq!((account.totals.balance.to_string(), account.totals.used.to_string()), ("9.3".into(), "0.7".into()));
        let usage = store.daily_totals(None, 10).await.unwrap().items;
        assert_eq!((usage.len(), usage[0].calls, usage[0].day.to_string()), (3, 7, "2026-02-03".to_owned()));
        let payments = store.payments(None, 10).await.unwrap().items;
        assert!(payments.len() == 3 && payments.iter().all(|record| record.payment.tx.chain_id == 8453));
    });
}

#[test]
fn oddities_are_listed_and_a_dry_run_writes_nothing() {
    let program = Program::without_store();
    let hub = Hub::new(&program);
    let amounts = [[5.0, 5.0, 0.0], [-1.5, 0.0, 1.5], [f64::INFINITY, 0.0, 0.0], [1.0, 0.0, 0.0]];
    for (number, amounts) in (0..).zip(amounts) {
        hub.key(&format!("k{number}"), &hash(number), amounts);
    }
    hub.transaction("k0", "purchase_topup", 5.0, Some(&format!("0x{}", hash(1))));
    hub.transaction("k1", "usage", -1.5, None);
    hub.transaction("k3", "mystery", 1.0, None);
    hub.transaction("gone", "usage", -1.0, None);
    hub.run(
        "UPDATE api_keys SET email = 'K0@EXAMPLE.COM' WHERE id = 'k1'; DELETE FROM signup_sessions WHERE id = 'sk3'",
    );
    hub.finish();
    // One account is refused.
    let dry: Value = program.run(&format!("{IMPORT} --dry-run --json")).expect(3).json();
    assert!(!program.database().exists(), "a dry run makes no store");
    let found: Value = program.run(&format!("{IMPORT} --json")).expect(3).json();
    let expected =
        ["duplicate_email", "missing_session", "negative_balance", "orphan_transaction", "refused", "unknown_type"];
    for report in [&dry, &found] {
        let mut kinds = oddities(report);
        kinds.sort_unstable();
        assert_eq!((kinds.as_slice(), counts(report, ["created", "refused"])), (&expected[..], [3, 1]), "{report}");
    }
    assert_eq!(counts(&found, ["equal"]), [3]);
    let text = program.run(IMPORT);
    assert!(text.stdout.contains("Balances: 3 equal, 0 changed since their import, 0 not equal."), "{text:?}");
}

#[test]
fn ids_names_and_open_quotes_move_in() {
    let program = Program::without_store();
    let hub = Hub::new(&program);
    hub.key("k0", &hash(0), [5.0, 5.0, 0.0]);
    hub.transaction("k0", "purchase_pay_signup", 5.0, Some(&format!("0x{}", hash(1))));
    hub.run(
        "UPDATE api_keys SET session_id = 'b0000000-0000-4000-8000-00000000pay1', \
         payer_address = '0x' || hex(zeroblob(19)) || '07'",
    );
    hub.run("INSERT INTO credit_plans VALUES ('starter', 8453, 10)");
    hub.quote("sqn_claimed-before", '7', Some("k0"));
    hub.quote("sqn_waits-for-its-payment", '8', None);
    hub.quote("sqn_expired-long-ago", '9', None);
    hub.run("UPDATE signup_payment_quotes SET expires_at = '2026-01-01T00:00:00Z' WHERE payer_address LIKE '0x9%'");
    hub.finish();
    program.documents(&[
        (&format!("{IMPORT} --dry-run"), &[("/quotes", "1")]),
        (IMPORT, &[("/quotes", "1"), ("/quotes_already_there", "0"), ("/oddities", "[]")]),
        (IMPORT, &[("/quotes", "0"), ("/quotes_already_there", "1")]),
        ("account show org_6b3000000000000000000000", &[("/agent_name", "\"buyer-7\"")]),
    ]);
    assert!(exported(&program).contains("org_6b3000000000000000000000"));
    let store = program.store();
    block_on(async {
        let quote = store.quote(&nonce_hash("sqn_waits-for-its-payment").unwrap()).await.unwrap().unwrap();
        assert_eq!((quote.amount.get(), quote.credits.to_string()), (5_000_000, "10".to_owned()));
        assert_eq!(store.quote(&nonce_hash("sqn_claimed-before").unwrap()).await.unwrap(), None);
    });
}

#[test]
fn a_copy_without_its_log_is_said_to_be_one() {
    let program = Program::without_store();
    hub(&program, 1);
    let copy = |name: &str| {
        std::fs::copy(program.path(FILE), program.path(name)).unwrap();
        report(&program, name, "agenthub")
    };
    assert_eq!(oddities(&copy("rollback.db")), [""; 0]);
    let connection = rusqlite::Connection::open(program.path(FILE)).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; UPDATE api_keys SET credit_balance = 77").unwrap();
    // The log stays, because the service still runs.
    assert_eq!(oddities(&copy("wal.db")), ["without_wal"]);
    let whole: Value = program.json(&format!("{IMPORT} --dry-run"));
    assert!(!oddities(&whole).contains(&"without_wal"), "{whole}");
}

#[test]
fn a_killed_import_is_run_again_with_the_same_result() {
    let (program, whole) = (Program::without_store(), Program::without_store());
    hub(&program, 600);
    std::fs::copy(program.path(FILE), whole.path(FILE)).unwrap();
    // The import never gets past this account, so it is always killed half-way.
    let store = SqliteStore::create(&program.database()).unwrap();
    let connection = rusqlite::Connection::open(program.database()).unwrap();
    let endless = "CREATE TRIGGER endless AFTER INSERT ON account WHEN NEW.agent_name = 'agent-k400' BEGIN \
                   WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i FROM n) SELECT count(*) FROM n; END";
    connection.execute_batch(endless).unwrap();
    let mut child = program.command(IMPORT).stdout(Stdio::null()).spawn().unwrap();
    let accounts = || block_on(store.accounts(None, 10_000)).unwrap().items.len() as u64;
    while accounts() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = accounts();
    assert!(before > 0 && before < 600, "it was killed half-way: {before}");
    connection.execute_batch("DROP TRIGGER endless").unwrap();
    let found = report(&program, FILE, "agenthub");
    assert_eq!(counts(&found, ["already_there", "created", "equal"]), [before, 600 - before, 600]);
    assert_eq!(found["balance_in_file"], found["balance_in_store"]);
    report(&whole, FILE, "agenthub");
    assert_eq!(exported(&program), exported(&whole));
}

#[test]
fn other_databases_are_refused() {
    let (program, _) = Program::with_account();
    program.write("text", "no database");
    program.refuses(&[("import --from text --format agenthub", 1, "cannot read text")]);
    let own = format!("import --from {} --format agenthub", program.database().display());
    let message = failed(program.run(&own), 1);
    assert!(message.contains("this is no agenthub database: table api_keys has no column"), "{message}");
}
