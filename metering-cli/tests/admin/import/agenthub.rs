//! The agenthub format.

use std::process::Stdio;
use std::time::Duration;

use metering_core::payments::nonce_hash;
use metering_core::store::PaymentStore;
use metering_core::{ApiKey, Store};
use serde_json::Value;

use super::hub::{FILE, Hub};
use super::{exported, import, oddities, report, write};
use crate::fixture::{Fixture, block_on};

fn hash(number: u32) -> String {
    format!("{number:064x}")
}

/// A key as the other service makes them.
fn key() -> ApiKey {
    ApiKey::parse(&format!("sk_live_{}", "0f".repeat(48))).unwrap()
}

/// Keys whose balance drifted as sums of doubles do.
#[expect(clippy::float_arithmetic, reason = "the other service's amounts are floats, and drift")]
fn hub(fixture: &Fixture, keys: u32) {
    let hub = Hub::new(fixture);
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
    let fixture = Fixture::new();
    hub(&fixture, 3);
    let found = report(&fixture, FILE, "agenthub");
    assert_eq!((found["equal"].as_u64(), found["unequal"].as_u64()), (Some(3), Some(0)), "{found}");
    assert_eq!(oddities(&found), [""; 0]);
    assert_eq!(found["balance_in_file"], found["balance_in_store"]);
    fixture.admin(&["verify"]).success();
    let store = fixture.store();
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
    let fixture = Fixture::new();
    let hub = Hub::new(&fixture);
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
    let dry = import(&fixture, FILE, "agenthub", &["--dry-run", "--json"]);
    assert_eq!(dry.code, 3, "one account is refused");
    assert!(!fixture.database().exists(), "a dry run makes no store");
    let run = import(&fixture, FILE, "agenthub", &["--json"]);
    assert_eq!(run.code, 3);
    let found: Value = run.json();
    let mut kinds = oddities(&found);
    kinds.sort_unstable();
    let expected =
        ["duplicate_email", "missing_session", "negative_balance", "orphan_transaction", "refused", "unknown_type"];
    assert_eq!(kinds, expected);
    assert_eq!((found["created"].as_u64(), found["equal"].as_u64()), (Some(3), Some(3)));
    let mut dry_kinds = dry.json::<Value>();
    assert_eq!((&dry_kinds["created"], &dry_kinds["refused"]), (&found["created"], &found["refused"]), "{dry_kinds}");
    let mut dry_kinds: Vec<String> =
        dry_kinds["oddities"].as_array_mut().unwrap().iter().map(|o| o["kind"].as_str().unwrap().to_owned()).collect();
    dry_kinds.sort_unstable();
    assert_eq!(dry_kinds, expected, "a dry run says the same");
    let text = import(&fixture, FILE, "agenthub", &[]);
    assert!(text.stdout.contains("Balances: 3 equal, 0 changed since their import, 0 not equal."), "{text:?}");
}

#[test]
fn ids_names_and_open_quotes_move_in() {
    let fixture = Fixture::new();
    let hub = Hub::new(&fixture);
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
    let dry = import(&fixture, FILE, "agenthub", &["--dry-run", "--json"]).success().json::<Value>();
    assert_eq!(dry["quotes"], 1);
    let found = report(&fixture, FILE, "agenthub");
    assert_eq!((&found["quotes"], &found["quotes_already_there"]), (&1.into(), &0.into()), "{found}");
    assert_eq!(oddities(&found), [""; 0]);
    let again = report(&fixture, FILE, "agenthub");
    assert_eq!((&again["quotes"], &again["quotes_already_there"]), (&0.into(), &1.into()), "{again}");
    let id = "org_6b3000000000000000000000";
    let shown: Value = fixture.json(&["account", "show", id]);
    assert_eq!((&shown["org_id"], &shown["agent_name"]), (&id.into(), &"buyer-7".into()));
    assert!(exported(&fixture).contains(id));
    let store = fixture.store();
    block_on(async {
        let quote = store.quote(&nonce_hash("sqn_waits-for-its-payment").unwrap()).await.unwrap().unwrap();
        assert_eq!((quote.amount.get(), quote.credits.to_string()), (5_000_000, "10".to_owned()));
        assert_eq!(store.quote(&nonce_hash("sqn_claimed-before").unwrap()).await.unwrap(), None);
    });
}

#[test]
fn a_copy_without_its_log_is_said_to_be_one() {
    let fixture = Fixture::new();
    hub(&fixture, 1);
    let copy = |name: &str| {
        std::fs::copy(fixture.path(FILE), fixture.path(name)).unwrap();
        report(&fixture, name, "agenthub")
    };
    assert_eq!(oddities(&copy("rollback.db")), [""; 0]);
    let connection = rusqlite::Connection::open(fixture.path(FILE)).unwrap();
    connection.execute_batch("PRAGMA journal_mode = WAL; UPDATE api_keys SET credit_balance = 77").unwrap();
    // The log stays, because the service still runs.
    assert_eq!(oddities(&copy("wal.db")), ["without_wal"]);
    let whole = import(&fixture, FILE, "agenthub", &["--dry-run", "--json"]).success().json::<Value>();
    assert!(!oddities(&whole).contains(&"without_wal"), "{whole}");
}

#[test]
fn a_killed_import_is_run_again_with_the_same_result() {
    let (fixture, whole) = (Fixture::new(), Fixture::new());
    hub(&fixture, 3_000);
    std::fs::copy(fixture.path(FILE), whole.path(FILE)).unwrap();
    let args = ["admin", "import", "--from", FILE, "--format", "agenthub"];
    let mut child = fixture.command(&args).stdout(Stdio::null()).spawn().unwrap();
    let accounts = || match fixture.database().exists() {
        true => block_on(async {
            match metering_sqlite::SqliteStore::open(&fixture.database()) {
                Ok(store) => store.accounts(None, 10_000).await.map_or(0, |page| page.items.len()),
                Err(_) => 0,
            }
        }),
        false => 0,
    };
    while accounts() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = accounts() as u64;
    assert!(before > 0 && before < 3_000, "it was killed half-way: {before}");
    let found = report(&fixture, FILE, "agenthub");
    assert_eq!((found["already_there"].as_u64(), found["created"].as_u64()), (Some(before), Some(3_000 - before)));
    assert_eq!(
        (found["equal"].as_u64(), found["balance_in_file"].clone()),
        (Some(3_000), found["balance_in_store"].clone())
    );
    report(&whole, FILE, "agenthub");
    assert_eq!(exported(&fixture), exported(&whole));
}

#[test]
fn other_databases_are_refused() {
    let fixture = Fixture::new();
    write(&fixture, "text", "no database");
    assert!(import(&fixture, "text", "agenthub", &[]).failure(1).contains("cannot read text"));
    fixture.create("a", "1");
    let own = fixture.database();
    let message = import(&fixture, own.to_str().unwrap(), "agenthub", &[]).failure(1);
    assert!(message.contains("this is no agenthub database: table api_keys has no column"), "{message}");
    assert!(import(&fixture, "none", "agenthub", &[]).failure(1).contains("cannot read none"));
}
