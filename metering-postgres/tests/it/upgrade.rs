//! Migrates databases of earlier schema versions, with data.

use metering_core::access::{BudgetReset, Key, KeyHash, KeyNumber};
use metering_core::charging::{HoldAction, HoldTerms, Outcome, Posting};
use metering_core::events::EventKind;
use metering_core::money::{BalanceAlert, Refill};
use metering_core::store::{EventStore, KeyStore, RefillStore, Refilled, SourceId};
use metering_core::usage::{Activity, ActivityKind, DayRange};
use metering_core::{
    Charge, ClientSource, Credits, Day, Decision, PaymentStore, RequestId, Store, SystemRandomness, Timestamp,
    UsageLine,
};
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Export, Section, TargetState};
use metering_tests::postgres::{fresh_schema, run_in};

use crate::versions::{current, migrate, version, version_seven, version_six, version_two};

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

/// An account with 1,200 entries: first a ledger entry, then usage, with a refund as every seventh entry.
pub(crate) const BOOKS: &str = "\
INSERT INTO account (id, org_id, agent_name, created_at) VALUES (5, 'org_x0000000000000000005', 'agent', 0);
INSERT INTO api_key (hash, account, created_at) VALUES (decode(repeat('05', 32), 'hex'), 5, 0);
INSERT INTO usage_line VALUES (77, '/x', 'GET', 'cli');
INSERT INTO ledger (id, account, entry, kind, amount, description, created_at) VALUES (6, 5, 1, 'adjustment', 9000000, 'g', 0);
INSERT INTO activity SELECT 5, n % 1000, n, 77, CASE WHEN n % 7 = 0 THEN 10 ELSE -10 END, n % 7 = 0, 1,
  CASE n % 3 WHEN 0 THEN '/x' WHEN 1 THEN '/x/' || n END, 1000 * n FROM generate_series(201, 1200) n;
INSERT INTO usage_daily VALUES (5, 20000, 77, 1028, 8570);
INSERT INTO meter (account, key, balance, purchased, granted, used, requests_per_minute, requests_per_day, entries)
  VALUES (5, decode(repeat('05', 32), 'hex'), 8991430, 0, 9000000, 8570, 0, 0, 1200);";

fn expected(number: i64) -> Activity {
    let refund = number % 7 == 0;
    Activity {
        id: format!("act_{number}"),
        kind: if refund { ActivityKind::UsageRefund } else { ActivityKind::Usage },
        amount: Credits::from_atoms(if refund { 10 } else { -10 }),
        description: None,
        line: Some(line()),
        request_path: match number % 3 {
            0 => Some("/x".into()),
            1 => Some(format!("/x/{number}").into()),
            _ => None,
        },
        calls: 1,
        payment: None,
        key: Some(KeyNumber::FIRST),
        created_at: Timestamp::from_unix_millis(1_000 * number),
    }
}

fn line() -> UsageLine {
    UsageLine { route_template: "/x".into(), http_method: "GET".into(), source: ClientSource::Cli }
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_packs_existing_usage_rows() {
    let Some(url) = fresh_schema() else { return };
    version_two(&url);
    run_in(&url, BOOKS);

    // Two nodes of the new version start at the same time.
    let config = url.parse().unwrap();
    let (store, other) = tokio::join!(PostgresStore::connect(&config), PostgresStore::connect(&config));
    let (store, _) = (store.unwrap(), other.unwrap());
    let id = "org_x0000000000000000005".parse().unwrap();
    let shown = store.activity(&id, 1_000).await.unwrap();
    assert_eq!(shown, (201..=1_200).rev().map(expected).collect::<Vec<_>>());
    assert_eq!(store.verify().await.unwrap().discrepancies, []);

    let charge = charge_of(3);
    for _ in 0..40 {
        let outcomes = store.commit(vec![Posting::Charge(charge.clone())], NOON).await.unwrap();
        assert!(matches!(outcomes[..], [Outcome::Decided(Decision::Accepted(_))]), "{outcomes:?}");
    }
    let shown = store.activity(&id, 1_000).await.unwrap();
    assert_eq!(shown[40..], (241..=1_200).rev().map(expected).collect::<Vec<_>>());
    let days = DayRange { first: Day::from_unix_days(20_000), last: NOON.day() };
    let report = store.usage_report(&id, days).await.unwrap().unwrap();
    assert_eq!(report.by_endpoint[0].credits_used, Credits::from_atoms(8_570 + 40 * 3));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn migration_packs_accounts_despite_number_gaps() {
    let Some(url) = fresh_schema() else { return };
    version_two(&url);
    // More accounts than one step packs, some of them without any entry.
    run_in(
        &url,
        "INSERT INTO account (id, org_id, agent_name, created_at)
           SELECT a * a, 'org_' || lpad(a::TEXT, 20, '0'), 'agent', 0 FROM generate_series(1, 200) a;
         INSERT INTO usage_line VALUES (77, '/x', 'GET', 'cli');
         INSERT INTO activity SELECT a * a, n, n, 77, -10, FALSE, 1, NULL, 1000 * n
           FROM generate_series(1, 200) a, generate_series(1, a % 4) n;
         INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, entries)
           SELECT a * a, 0, 0, 0, 0, 0, 0, a % 4 FROM generate_series(1, 200) a",
    );
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    for account in 1..=200 {
        let shown = store.activity(&format!("org_{account:020}").parse().unwrap(), 10).await.unwrap();
        assert_eq!(shown.len(), account % 4, "{account}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inspecting_an_earlier_schema_changes_nothing() {
    let Some(url) = fresh_schema() else { return };
    version_two(&url);
    let inspection = PostgresStore::connect_to_inspect(&url.parse().unwrap()).await.unwrap().unwrap();
    // PostgreSQL had 16 versions before the shared schema.
    let newest = 16 + i64::try_from(metering_sql::schema::STEPS.len()).unwrap();
    assert_eq!(inspection.upgrade(), Some((2, newest)));
    assert_eq!(inspection.target_state(&SourceId::from_bytes([7; 16])).await.unwrap(), TargetState::Empty);
    assert_eq!(version(&url), 2);
    run_in(&url, BOOKS);
    assert!(matches!(inspection.target_state(&SourceId::from_bytes([7; 16])).await.unwrap(), TargetState::Occupied(_)));
}

/// Payments that are on their way during the migration still count: chains that were already in use are registered from
/// the time of the store's first account.
#[tokio::test(flavor = "multi_thread")]
async fn recipients_of_used_chains_are_known_since_store_creation() {
    let Some(url) = fresh_schema() else { return };
    version_two(&url);
    run_in(&url, &format!("{BOOKS} UPDATE account SET created_at = 5000; INSERT INTO scan_mark VALUES (8453, 17);"));
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let recipient = |byte| metering_core::chains::Address::from_bytes([byte; 20]);
    let configured = vec![(8453, recipient(1)), (1, recipient(1))];
    let found = store.register_recipients(configured, NOON).await.unwrap();
    assert_eq!((found[0].since, found[0].other_store), (Timestamp::from_unix_millis(5_000), None));
    assert_eq!(found[1].since, NOON, "a chain that was never used");
    let later = NOON.saturating_add(std::time::Duration::from_secs(60));
    assert_eq!(store.register_recipients(vec![(8453, recipient(2))], later).await.unwrap()[0].since, later);
    assert_eq!(store.recipients().await.unwrap().len(), 3);
}

/// Entry 5 in the tail and entry 4 in a block, each a charge of 3 atoms at noon. The bytes are those of version 6.
const BOOKS_OF_SIX: &str = "\
INSERT INTO account (id, org_id, agent_name, created_at, revoked_at) VALUES
  (5, 'org_x0000000000000000005', 'agent', 7000, NULL), (6, 'org_x0000000000000000006', 'gone', 8000, 9000);
INSERT INTO api_key (hash, account, created_at, revoked_at) VALUES
  (decode(repeat('05', 32), 'hex'), 5, 7500, NULL), (decode(repeat('15', 32), 'hex'), 5, 7000, 7500),
  (decode(repeat('06', 32), 'hex'), 6, 8000, 9000);
INSERT INTO usage_line (id, digest, route_template, http_method, source)
  VALUES (x'123456789abcdef0'::BIGINT, sha256('x'), '/x', 'GET', 'cli');
INSERT INTO ledger (id, account, entry, kind, amount, description, created_at) VALUES (6, 5, 1, 'adjustment', 1000, 'g', 0);
INSERT INTO activity VALUES (5, 0, 0, decode('0008f0debc9a78563412050002' || '8098d2dfbf6801', 'hex'));
INSERT INTO usage_daily VALUES (5, 20778, x'123456789abcdef0'::BIGINT, 3, 9);
INSERT INTO meter (account, key, balance, purchased, granted, used, requests_per_minute, requests_per_day, entries, tail_day, tail)
  VALUES (5, decode(repeat('05', 32), 'hex'), 988, 0, 1000, 12, 0, 0, 5, 20778, decode('000af0debc9a78563412050002' || '8098d2dfbf6801', 'hex')),
  (6, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, '');";

#[tokio::test(flavor = "multi_thread")]
async fn every_account_of_version_six_gets_its_first_key() {
    let Some(url) = fresh_schema() else { return };
    version_six(&url);
    run_in(&url, BOOKS_OF_SIX);
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
    let hash = |byte| KeyHash::from_bytes([byte; 32]);
    assert_eq!(store.live_keys(&[hash(5), hash(0x15), hash(6)], NOON).await.unwrap(), [true, false, false]);
    let holder = store.key_holder(&hash(5)).await.unwrap().unwrap();
    let key = holder.key().unwrap().clone();
    let expected =
        Key { id: key.id.clone(), ..Key::first(holder.account.id.clone(), &hash(5), holder.account.created_at) };
    assert_eq!((holder.chain.len(), &key), (1, &expected));
    let ids: Vec<_> = store.export(Section::Keys, None, 10).await.unwrap().items;
    assert_eq!(ids.len(), 2, "a revoked account has its key too");
    assert_eq!(run_in(&url, "SELECT count(DISTINCT id) FROM api_key"), "2");

    let id = holder.account.id;
    let usage = store.key(&id, &key.id, NOON.day()).await.unwrap().unwrap().usage;
    assert_eq!((usage.total.atoms(), usage.daily.atoms(), usage.last_used), (12, 12, Some(NOON.day())));
    let shown = store.activity(&id, 10).await.unwrap();
    let shown: Vec<_> = shown.iter().map(|entry| (entry.id.as_str(), entry.key, entry.amount.atoms())).collect();
    assert_eq!(
        shown,
        [("act_5", Some(KeyNumber::FIRST), -3), ("act_4", Some(KeyNumber::FIRST), -3), ("act_1", None, 1000)]
    );
    // More usage of the same line and day adds to the same total.
    let charge = charge_of(3);
    for _ in 0..40 {
        store.commit(vec![Posting::Charge(charge.clone())], NOON).await.unwrap();
    }
    let days = DayRange { first: NOON.day(), last: NOON.day() };
    let report = store.usage_report(&id, days).await.unwrap().unwrap();
    assert_eq!(report.by_key.iter().map(|key| key.credits_used.atoms()).collect::<Vec<_>>(), [12 + 40 * 3]);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// Entries 5, a refund, and 4, a charge, of 3 atoms each in the tail, and the result of a request. The bytes are those
/// of version 7.
const BOOKS_OF_SEVEN: &str = "\
INSERT INTO account (id, org_id, agent_name, created_at) VALUES (5, 'org_x0000000000000000005', 'agent', 7000);
INSERT INTO api_key (account, number, id, name, scopes, routes, networks, disabled, requests_per_minute, requests_per_day,
    max_in_flight, budget, created_at)
  VALUES (5, 0, 'key_00000000000000000005', 'First key', 'call read manage topup', '', '', FALSE, 0, 0, 0, 100, 7000);
INSERT INTO key_secret (hash, account, key, created_at) VALUES (decode(repeat('05', 32), 'hex'), 5, 0, 7500);
INSERT INTO key_meter VALUES (5, 0, 0, 9, 0, 0, 0, 0);
INSERT INTO usage_line (id, digest, route_template, http_method, source)
  VALUES (x'123456789abcdef0'::BIGINT, sha256('x'), '/x', 'GET', 'cli');
INSERT INTO ledger (id, account, entry, kind, amount, description, created_at) VALUES (6, 5, 1, 'adjustment', 1000, 'g', 0);
INSERT INTO usage_daily VALUES (5, 20778, x'123456789abcdef0'::BIGINT, 3, 9, 0);
INSERT INTO request_id (account, request_id, charged, balance, expires_at) VALUES (5, 'order-1', 7, 991, 1795305600000);
INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, entries, tail_day, tail)
  VALUES (5, 991, 0, 1000, 9, 0, 0, 5, 20778,
    decode('000af0debc9a78563412060102' || '8098d2dfbf6801' || '0008f0debc9a78563412050002' || '8098d2dfbf6801', 'hex'));";

/// A schema of version 7 or later with [`BOOKS_OF_SEVEN`]. `None` if these tests are disabled.
pub(crate) fn books_of_version(version: usize) -> Option<String> {
    let url = fresh_schema()?;
    version_seven(&url);
    run_in(&url, BOOKS_OF_SEVEN);
    if version > 7 {
        migrate(&url, 8..=version);
    }
    Some(url)
}

/// Upgrades a schema, and fails unless nodes of the previous version could keep working: their writes find everything
/// that they name.
pub(crate) async fn upgraded(url: &str) -> PostgresStore {
    let columns = "SELECT table_name, string_agg(column_name, ' ' ORDER BY ordinal_position) \
                   FROM information_schema.columns WHERE table_schema = current_schema() GROUP BY 1 ORDER BY 1";
    let before = run_in(url, columns);
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    assert_eq!(version(url), current());
    let after = run_in(url, columns);
    assert!(before.lines().all(|table| after.lines().any(|other| other.starts_with(table))), "{before}\n{after}");
    store
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_version_seven_hold_nothing_and_go_on() {
    let Some(url) = books_of_version(7) else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    assert_eq!(version(&url), current());
    // Running nodes of version 7 stop: all their commits write this column.
    assert_eq!(
        run_in(&url, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'outcome'::regclass AND attname = 'at'"),
        "0"
    );
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
    let id = "org_x0000000000000000005".parse().unwrap();
    let totals = store.account(&id).await.unwrap().unwrap().totals;
    assert_eq!((totals.balance.atoms(), totals.held.atoms(), totals.used.atoms()), (991, 0, 9));
    let shown = store.activity(&id, 2).await.unwrap();
    let shown: Vec<_> = shown.iter().map(|entry| (entry.kind, entry.amount.atoms(), entry.calls)).collect();
    assert_eq!(shown, [(ActivityKind::UsageRefund, 3, 1), (ActivityKind::Usage, -3, 1)]);

    // The result of a request still counts, and is that of a charge.
    let known = charge_of(7).with_request_id(RequestId::parse("order-1").unwrap());
    let fallback = Credits::from_atoms(2);
    let terms = HoldTerms::new(&SystemRandomness, std::time::Duration::from_secs(30), fallback);
    let held = charge_of(20).with_hold(terms);
    let outcomes = store.commit(vec![Posting::Charge(known), Posting::Charge(held)], NOON).await.unwrap();
    let [Outcome::Decided(Decision::Accepted(known)), Outcome::Decided(Decision::Accepted(held))] = &outcomes[..]
    else {
        panic!("{outcomes:?}");
    };
    assert_eq!((known.repeated, known.charged.atoms(), known.hold), (true, 7, None));
    assert_eq!(held.balance.atoms(), 971);
    let release = held.hold_update(HoldAction::CaptureFallback).unwrap();
    store.commit(vec![Posting::Hold(release)], NOON).await.unwrap();
    let totals = store.account(&id).await.unwrap().unwrap().totals;
    assert_eq!((totals.balance.atoms(), totals.held.atoms(), totals.used.atoms()), (989, 0, 11));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// The new columns change nothing for accounts, and nodes of version 8 keep working: their rows have no value in them.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_version_eight_are_refilled() {
    let Some(url) = books_of_version(8) else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    assert_eq!(store.refill().await.unwrap(), None);
    assert_eq!(store.refill_accounts(NOON, 10).await.unwrap(), Refilled::NOTHING);
    run_in(
        &url,
        "INSERT INTO account (id, org_id, agent_name, created_at) VALUES (9, 'org_x0000000000000000009', 'late', 0);
         INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, entries)
           VALUES (9, 0, 0, 0, 0, 0, 0, 0);",
    );
    let (credits, cap) = (Credits::from_atoms(1_000), Credits::from_atoms(1_000));
    store.set_refill(Some(Refill { credits, every: BudgetReset::Monthly, cap })).await.unwrap();
    let refilled = store.refill_accounts(NOON, 10).await.unwrap();
    assert_eq!(refilled, Refilled { accounts: 2, credits: Credits::from_atoms(9 + 1_000), is_done: true });
    let shown = store.activity(&"org_x0000000000000000005".parse().unwrap(), 2).await.unwrap();
    let shown: Vec<_> = shown.iter().map(|entry| (entry.id.as_str(), entry.amount.atoms())).collect();
    assert_eq!(shown, [("act_6", 9), ("act_5", 3)]);
    assert_eq!(run_in(&url, "SELECT count(*) FROM account WHERE refilled_on = 20778"), "2");
}

/// Nodes of version 9 would change accounts without writing events.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_version_nine_get_events_and_nodes_of_that_version_stop() {
    let Some(url) = books_of_version(9) else { return };
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let of_nine = "SELECT count(*) FROM pg_attribute WHERE attrelid = 'outcome'::regclass AND attname = 'marked_at'";
    assert_eq!(run_in(&url, of_nine), "0", "all commits of version 9 write this column");
    let id = "org_x0000000000000000005".parse().unwrap();
    let account = store.account(&id).await.unwrap().unwrap();
    assert_eq!(account.alert, BalanceAlert::default());
    assert_eq!(store.events(&id, None, 10).await.unwrap().items, []);

    // A threshold counts from the next charge on, and so does the budget that there was before: 9 of 100 are spent.
    let alerted = store.set_balance_alert(&id, Some(Credits::from_atoms(950))).await.unwrap().unwrap();
    assert_eq!(alerted.totals, account.totals);
    for atoms in [41, 1, 49, 1] {
        store.commit(vec![Posting::Charge(charge_of(atoms))], NOON).await.unwrap();
    }
    let events = store.events(&id, None, 10).await.unwrap().items;
    let kinds: Vec<_> = events.iter().rev().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::BalanceLow, EventKind::BudgetExhausted]);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

pub(crate) fn charge_of(atoms: i64) -> Charge {
    Charge::of(KeyHash::from_bytes([5; 32]), Credits::from_atoms(atoms), line())
}
