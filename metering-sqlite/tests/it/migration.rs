//! Migrates databases of earlier versions.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{BudgetReset, Key, KeyHash, KeyNumber, Totals};
use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{HoldTerms, Posting, Repetition, Volume, VolumeTerms};
use metering_core::clock::Month;
use metering_core::events::EventKind;
use metering_core::money::{BalanceAlert, LedgerKind, Refill};
use metering_core::payments::PaymentSettlement;
use metering_core::store::{EventStore, HoldStore, KeyStore, PaymentCredited, QuoteOpened, RefillStore, Refilled};
use metering_core::usage::{ActivityKind, DayRange};
use metering_core::{
    AccountId, Credits, PaymentStore, Refusal, RequestId, Store, StoreError, SystemRandomness, Timestamp,
};
use metering_sqlite::SqliteStore;

use crate::scene::{NOON, charge, charge_of, credit, database_path, post, quote, tx};

const VERSION_1: &str = include_str!("../../src/migrations/0001_initial.sql");

/// An account that has used 3 of 10 base calls, and a revoked one that has a payer address but no payer chain.
const ROWS: &str = "
    INSERT INTO account (id, org_id, agent_name, email, email_folded, payer_address, created_at, revoked_at) VALUES
      (1, 'org_aaaaaaaaaaaaaaaaaaaa', 'first', 'A@example.com', 'a@example.com', NULL, 1795262000000, NULL),
      (2, 'org_bbbbbbbbbbbbbbbbbbbb', 'second', NULL, NULL, x'0101010101010101010101010101010101010101', 1795262100000,
       1795262200000);
    INSERT INTO api_key (hash, account, created_at, revoked_at) VALUES
      (x'1111111111111111111111111111111111111111111111111111111111111111', 1, 1795262000000, NULL),
      (x'2222222222222222222222222222222222222222222222222222222222222222', 2, 1795262100000, 1795262200000);
    INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, activity_head)
      VALUES (1, 7 * BASE, 4 * BASE, 6 * BASE, 3 * BASE, 0, 0, 3), (2, 0, 0, 0, 0, 240, 1500, NULL);
    INSERT INTO ledger (id, account, kind, amount, description, created_at) VALUES
      (1, 1, 'adjustment', 6 * BASE, 'Granted', 1795262000000),
      (2, 1, 'purchase_topup', 4 * BASE, 'Paid by invoice', 1795262000001);
    INSERT INTO usage_line (id, route_template, http_method, source) VALUES (1, '/y', 'GET', 'direct');
    INSERT INTO usage_daily (day, account, line, calls, amount) VALUES (20778, 1, 1, 3, 3 * BASE);
    INSERT INTO activity (id, account, previous, line, amount, refund, calls, request_path, created_at)
      VALUES (3, 1, NULL, 1, -3 * BASE, 0, 3, '/y', 1795262000002);
    INSERT INTO request_id (account, request_id, charged, balance, expires_at) VALUES (1, 'once', 1, 1, 1795262400001);
    PRAGMA application_id = 0x4d747231;
    PRAGMA user_version = 1;";

fn write<'s>(file: &Path, scripts: impl IntoIterator<Item = &'s &'s str>) -> rusqlite::Connection {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let connection = rusqlite::Connection::open(file).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    for script in scripts {
        connection.execute_batch(script).unwrap();
    }
    connection
}

fn write_version_1(file: &Path) -> rusqlite::Connection {
    let rows = ROWS.replace("BASE", &Credits::BASE_CALL.atoms().to_string());
    write(file, &[VERSION_1, &rows])
}

/// Writes a database of version 4 with the rows of version 1 and what `changes` makes.
pub(crate) fn write_version_4(file: &Path, changes: &str) {
    let connection = write_version_1(file);
    for script in UP_TO_VERSION_4[1..].iter().chain([&changes, &"PRAGMA user_version = 4"]) {
        connection.execute_batch(script).unwrap();
    }
}

#[tokio::test]
async fn version_1_database_is_migrated_with_its_data() {
    let (_folder, file) = database_path();
    drop(write_version_1(&file));
    let store = SqliteStore::open(&file).unwrap();
    let first: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let (key, revoked) = (KeyHash::from_bytes([0x11; 32]), KeyHash::from_bytes([0x22; 32]));
    let calls = |count: i64| Credits::from_atoms(count * Credits::BASE_CALL.atoms());

    let accounts = store.accounts(None, 10).await.unwrap().items;
    let names: Vec<_> = accounts.iter().map(|account| (account.agent_name.as_str(), account.payer)).collect();
    assert_eq!(names, [("first", None), ("second", None)], "a payer without a chain is dropped");
    let expected = Totals { balance: calls(7), purchased: calls(4), granted: calls(6), used: calls(3), held: calls(0) };
    assert_eq!(accounts[0].totals, expected);
    assert!(accounts[0].email.is_some() && accounts[1].revoked_at.is_some());
    let ledger = store.ledger(None, 10).await.unwrap().items;
    let entries: Vec<_> = ledger.iter().map(|entry| (entry.kind, entry.amount, &entry.payment)).collect();
    assert_eq!(entries, [(LedgerKind::Adjustment, calls(6), &None), (LedgerKind::PurchaseTopup, calls(4), &None)]);
    assert_eq!(store.activity(&first, 10).await.unwrap().len(), 3);
    assert_eq!(store.daily_totals(None, 10).await.unwrap().items[0].credits_used, calls(3));
    let verification = store.verify().await.unwrap();
    assert_eq!((verification.accounts, verification.discrepancies), (2, Vec::new()));
    assert_eq!(store.forget_expired(NOON.saturating_add(Duration::from_secs(1))).await.unwrap(), 1);

    assert_eq!(charge(&store, key).await, Ok(6));
    assert_eq!(charge(&store, revoked).await, Err(Refusal::UnknownKey));
    assert_eq!(store.open_quote(quote(1)).await.unwrap(), QuoteOpened::Opened);
    let credited = store.credit_payment(credit(&first, 2, tx(1))).await.unwrap();
    assert!(matches!(credited, PaymentCredited::Account(_)), "{credited:?}");
    assert_eq!(charge(&store, key).await, Ok(15));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// The scripts of versions 1 to 4.
const UP_TO_VERSION_4: [&str; 4] = [
    VERSION_1,
    include_str!("../../src/migrations/0002_payments.sql"),
    include_str!("../../src/migrations/0003_signups.sql"),
    include_str!("../../src/migrations/0004_moving.sql"),
];

/// The payment behind a top-up of four base calls.
const PAYMENT: &str = "
    INSERT INTO payment (chain_id, tx_hash, payer, recipient, token, amount, block_number, mined_at, account, used_as,
      plan_id, recorded_at)
    VALUES (8453, x'3333333333333333333333333333333333333333333333333333333333333333', zeroblob(20), zeroblob(20),
      zeroblob(20), zeroblob(16), 17, 1795262000000, 1, 'topup', 'starter', 1795262000001);
    UPDATE ledger SET tx_chain_id = 8453, plan_id = 'starter',
      tx_hash = x'3333333333333333333333333333333333333333333333333333333333333333' WHERE kind = 'purchase_topup'";

#[tokio::test]
async fn payments_of_version_4_are_final() {
    let (_folder, file) = database_path();
    write_version_4(&file, PAYMENT);
    let store = SqliteStore::open(&file).unwrap();
    let record = store.payments(None, 10).await.unwrap().items.remove(0);
    assert_eq!((record.settlement, record.payment.block_hash), (PaymentSettlement::Final, None));
    assert!(store.unsettled_payments(8453, None, 10).await.unwrap().items.is_empty());
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// The scripts of versions 5 to 8, except for the activity of version 5, which this test does not have.
const VERSIONS_5_TO_8: [&str; 5] = [
    include_str!("../../src/migrations/0005_hardening.sql"),
    include_str!("../../src/migrations/0006_journal.sql"),
    include_str!("../../src/migrations/0006_packed.sql"),
    include_str!("../../src/migrations/0007_receipts_links_quotes.sql"),
    include_str!("../../src/migrations/0008_operators.sql"),
];

/// An account that was granted 10 base calls, has used 3, and replaced its key once; and a revoked one. The journal has
/// two more calls of the first account and a refund of one, and a change of the second one's settings.
const ROWS_8: &str = "
    INSERT INTO account (id, org_id, agent_name, created_at, revoked_at) VALUES
      (1, 'org_aaaaaaaaaaaaaaaaaaaa', 'first', 1795262000000, NULL),
      (2, 'org_bbbbbbbbbbbbbbbbbbbb', 'second', 1795262100000, 1795262200000);
    INSERT INTO api_key (hash, account, created_at, revoked_at) VALUES
      (x'1111111111111111111111111111111111111111111111111111111111111111', 1, 1795262000000, 1795262000500),
      (x'2222222222222222222222222222222222222222222222222222222222222222', 2, 1795262100000, 1795262200000),
      (x'3333333333333333333333333333333333333333333333333333333333333333', 1, 1795262000500, NULL);
    INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, activity_count)
      VALUES (1, 7000000, 0, 10000000, 3000000, 0, 0, 1), (2, 0, 0, 0, 0, 240, 1500, 0);
    INSERT INTO ledger (id, account, kind, amount, description, created_at) VALUES
      (1, 1, 'adjustment', 10000000, 'Granted', 1795262000000);
    INSERT INTO usage_line (id, route_template, http_method, source) VALUES (1, '/y', 'GET', 'direct');
    INSERT INTO usage_daily (day, account, line, calls, amount) VALUES (20777, 1, 1, 1, 1000000), (20778, 1, 1, 2, 2000000);
    INSERT INTO recent_activity (account, slot, block, entries) VALUES (1, 0, 0, x'000602ff9aee02000384aea1dfbf6801');
    INSERT INTO charge_journal (id, entries) VALUES
      (5, x'00068098d2dfbf68020200010000028092f4010102000100010180897a02032f793fbf9ce4dc'),
      (6, x'000a000104021d77d270');
    UPDATE fold SET floor = 3, upto = 3, paid = 3;
    PRAGMA application_id = 0x4d747231;
    PRAGMA user_version = 8;";

#[tokio::test]
async fn version_8_keys_and_usage_become_those_of_first_keys() {
    let (_folder, file) = database_path();
    drop(write(&file, UP_TO_VERSION_4.iter().chain(&VERSIONS_5_TO_8).chain([&ROWS_8])));
    let first: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let [replaced, of_revoked, live] = [0x11, 0x22, 0x33].map(|byte| KeyHash::from_bytes([byte; 32]));
    // The first time the journal is read unfolded, then it is folded.
    for balance in [5, 4] {
        let store = SqliteStore::open(&file).unwrap();
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
        let keys = store.keys(&first, None, 10, NOON.day()).await.unwrap().items;
        let [only] = &keys[..] else { panic!("{keys:?}") };
        let key = Key {
            id: only.key.id.clone(),
            ..Key::first(first.clone(), &live, Timestamp::from_unix_millis(1_795_262_000_000))
        };
        assert_eq!((&only.key, only.spent, only.parents_are_live), (&key, None, true));
        let used = 9 - balance;
        assert_eq!(only.usage.total, Credits::from_atoms(used * 1_000_000));
        assert_eq!(only.usage.daily, Credits::from_atoms((used - 1) * 1_000_000));
        assert_eq!(store.key_holder(&live).await.unwrap().unwrap().chain, [key]);
        assert_eq!(store.live_keys(&[replaced, of_revoked, live], NOON).await.unwrap(), [false, false, true]);
        let activity = store.activity(&first, 10).await.unwrap();
        let usage: Vec<_> = activity.iter().filter(|entry| entry.line.is_some()).map(|entry| entry.key).collect();
        assert!(usage.len() >= 3 && usage.iter().all(|key| *key == Some(KeyNumber::FIRST)), "{activity:?}");
        let days = DayRange::last_days(NOON, 2);
        let report = store.usage_report(&first, days).await.unwrap().unwrap();
        let by_key: Vec<_> = report.by_key.iter().map(|total| (total.key, total.credits_used)).collect();
        assert_eq!(by_key, [(KeyNumber::FIRST, only.usage.total)]);
        assert_eq!(charge(&store, replaced).await, Err(Refusal::UnknownKey));
        assert_eq!(charge(&store, of_revoked).await, Err(Refusal::UnknownKey));
        assert_eq!(charge(&store, live).await, Ok(balance));
    }
}

const VERSION_9: &str = include_str!("../../src/migrations/0009_keys.sql");

/// An account that was granted 10 base calls, with a child key of its first key, and with a charge with a request id. Four
/// calls of its first key and a refund of the other key are in the tables, two more calls and a refund of the other key
/// in the journal.
const ROWS_9: &str = "
    INSERT INTO account (id, org_id, agent_name, created_at) VALUES (1, 'org_aaaaaaaaaaaaaaaaaaaa', 'first', 1795262000000);
    INSERT INTO api_key (account, number, public_id, parent, name, scopes, routes, networks, disabled, requests_per_minute,
        requests_per_day, max_in_flight, created_at) VALUES
      (1, 0, 'key_00000000000000000000', NULL, 'First key', 'call read manage topup', '', '', 0, 0, 0, 0, 1795262000000),
      (1, 1, 'key_11111111111111111111', 0, 'Made', 'call', '', '', 0, 0, 0, 0, 1795262000000);
    INSERT INTO key_secret (hash, account, key, created_at) VALUES
      (x'1111111111111111111111111111111111111111111111111111111111111111', 1, 0, 1795262000000),
      (x'2222222222222222222222222222222222222222222222222222222222222222', 1, 1, 1795262000000);
    INSERT INTO meter (account, balance, purchased, granted, used, requests_per_minute, requests_per_day, minute,
        minute_count, day, day_count, activity_count)
      VALUES (1, 7000000, 0, 10000000, 3000000, 0, 9, 29921033, 4, 20778, 4, 2);
    INSERT INTO ledger (id, account, kind, amount, description, created_at) VALUES
      (1, 1, 'adjustment', 10000000, 'Granted', 1795262000000);
    INSERT INTO usage_line (id, route_template, http_method, source) VALUES (1, '/y', 'GET', 'direct');
    INSERT INTO usage_daily (day, account, line, key, calls, amount) VALUES
      (20778, 1, 1, 0, 4, 4000000), (20778, 1, 1, 1, 0, -1000000);
    INSERT INTO recent_activity (account, slot, block, entries)
      VALUES (1, 0, 0, x'000402ffa3e803000484aea1dfbf68010101060280897a010184aea1dfbf6800');
    INSERT INTO charge_journal (id, entries)
      VALUES (5, x'00068098d2dfbf6802020301010000028092f401010203010100010180897a02032f793ff52b4206');
    UPDATE fold SET floor = 3, upto = 3, paid = 3;
    INSERT INTO request_id (account, request_id, charged, balance, expires_at) VALUES (1, 'once', 5, 6, 1795262400001);
    PRAGMA application_id = 0x4d747231;
    PRAGMA user_version = 9;";

/// The scripts of versions 10 to 16.
const VERSIONS_10_TO_16: [&str; 7] = [
    include_str!("../../src/migrations/0010_holds.sql"),
    include_str!("../../src/migrations/0011_refills.sql"),
    include_str!("../../src/migrations/0012_events.sql"),
    include_str!("../../src/migrations/0013_authorizations.sql"),
    include_str!("../../src/migrations/0014_hash_kinds.sql"),
    include_str!("../../src/migrations/0015_prices.sql"),
    include_str!("../../src/migrations/0016_route_volumes.sql"),
];

/// Writes a database of version 9 to 16 with the rows of version 9.
pub(crate) fn write_version(version: usize, file: &Path) -> rusqlite::Connection {
    let later = &VERSIONS_10_TO_16[..version - 9];
    let connection =
        write(file, UP_TO_VERSION_4.iter().chain(&VERSIONS_5_TO_8).chain([&VERSION_9, &ROWS_9]).chain(later));
    connection.pragma_update(None, "user_version", i64::try_from(version).unwrap()).unwrap();
    connection
}

#[tokio::test]
async fn version_9_charges_are_no_holds() {
    let (_folder, file) = database_path();
    drop(write_version(9, &file));
    let id: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let [first, made] = [0x11, 0x22].map(|byte| KeyHash::from_bytes([byte; 32]));
    let atoms = Credits::from_atoms;
    let once = charge_of(first, atoms(1)).with_request_id(RequestId::parse("once").unwrap());
    let terms = HoldTerms::new(&SystemRandomness, Duration::from_secs(60), Credits::ZERO);
    let check = async |store: &SqliteStore| {
        let totals = store.account(&id).await.unwrap().unwrap().totals;
        assert_eq!((totals.balance, totals.used, totals.held), (atoms(6_000_000), atoms(4_000_000), Credits::ZERO));
        let activity = store.activity(&id, 4).await.unwrap();
        let entries: Vec<_> = activity.iter().map(|entry| (entry.kind, entry.amount.atoms(), entry.calls)).collect();
        let (usage, refund) = (ActivityKind::Usage, ActivityKind::UsageRefund);
        let expected = [(refund, 1_000_000, 1), (usage, -2_000_000, 2), (refund, 1_000_000, 1), (usage, -4_000_000, 4)];
        assert_eq!(entries, expected);
        assert_eq!(store.verify().await.unwrap().discrepancies, []);
        assert_eq!(store.open_holds(&id, 9).await.unwrap(), []);
        let repeated = post(store, once.clone()).await.unwrap();
        assert_eq!((repeated.charged, repeated.repeated, repeated.hold), (atoms(5), true, None));
        let as_hold = post(store, once.clone().with_hold(terms)).await;
        assert!(matches!(as_hold, Err(Refusal::Repeated(Repetition::OtherRequest))), "{as_hold:?}");
    };
    // The first time the journal is read unfolded, then it is folded.
    for _ in 0..2 {
        let store = SqliteStore::open(&file).unwrap();
        check(&store).await;
    }
    let store = SqliteStore::open(&file).unwrap();
    let held = post(&store, charge_of(made, Credits::BASE_CALL).with_hold(terms)).await.unwrap();
    // Four calls were counted in the table, and two in the journal.
    assert_eq!((held.balance, held.rate.day.count), (atoms(5_000_000), 7));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn version_10_accounts_are_refilled() {
    let (_folder, file) = database_path();
    drop(write_version(10, &file));
    let id: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let store = SqliteStore::open(&file).unwrap();
    let before = store.account(&id).await.unwrap().unwrap().totals.balance;
    let credits = Credits::from_atoms(5);
    let refill = Refill { credits, every: BudgetReset::Monthly, cap: Credits::MAX };
    store.set_refill(Some(refill)).await.unwrap();
    let next_month = NOON.saturating_add(Duration::from_secs(10 * 86_400));
    // The newest charges are only in the journal: they count.
    let refilled = store.refill_accounts(next_month, 10).await.unwrap();
    assert_eq!(refilled, Refilled { accounts: 1, credits, is_done: true });
    let totals = store.account(&id).await.unwrap().unwrap().totals;
    assert_eq!(Some(totals.balance), before.checked_add(credits));
    assert_eq!(store.activity(&id, 1).await.unwrap()[0].amount, credits);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn version_11_accounts_are_told_from_the_next_charge_on() {
    let (_folder, file) = database_path();
    drop(write_version(11, &file));
    let id: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let atoms = Credits::from_atoms;
    let store = SqliteStore::open(&file).unwrap();
    // The newest charges are only in the journal.
    let account = store.account(&id).await.unwrap().unwrap();
    assert_eq!((account.totals.balance, account.alert), (atoms(6_000_000), BalanceAlert::default()));
    assert_eq!(store.events(&id, None, 9).await.unwrap().items, []);
    let keys = store.keys(&id, None, 9, NOON.day()).await.unwrap().items;
    assert!(keys.iter().all(|status| status.key.terms.alert_below.is_none()), "{keys:?}");
    let alerted = store.set_balance_alert(&id, Some(atoms(6_000_000))).await.unwrap().unwrap();
    assert_eq!(alerted.totals, account.totals);
    let first = KeyHash::from_bytes([0x11; 32]);
    for price in [1, 5_999_998, 1] {
        let _ = post(&store, charge_of(first, atoms(price))).await.unwrap();
    }
    let events = store.events(&id, None, 9).await.unwrap().items;
    let kinds: Vec<_> = events.iter().rev().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::BalanceLow, EventKind::BalanceExhausted]);
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test]
async fn version_16_counts_have_no_returned_places() {
    let (_folder, file) = database_path();
    let connection = write_version(16, &file);
    connection.execute_batch("INSERT INTO route_volume VALUES (1, '/x', 'GET', 682, 2)").unwrap();
    let id: AccountId = "org_aaaaaaaaaaaaaaaaaaaa".parse().unwrap();
    let store = SqliteStore::open(&file).unwrap();
    let volume = async || store.volumes(&id).await.unwrap().remove(0).1;
    let of_month = |requests, returned: &str| {
        let returned = returned.parse().unwrap();
        Volume { month: NOON.day().month(), requests, returned }
    };
    assert_eq!(volume().await, of_month(2, ""));
    // Two for nothing, and then one for 5 atoms that is refunded after the next one.
    let tiers =
        Arc::new(VolumeTiers::new(vec![(2, Credits::ZERO), (3, Credits::from_atoms(5))], Credits::ZERO).unwrap());
    let by_volume = Some(VolumeTerms { tiers, max_cost: None });
    let request = charge_of(KeyHash::from_bytes([0x11; 32]), Credits::from_atoms(5)).with_by_volume(by_volume);
    let third = post(&store, request.clone()).await.unwrap();
    assert_eq!(third.charged.atoms(), 5);
    assert_eq!(post(&store, request.clone()).await.unwrap().charged, Credits::ZERO);
    let refund = Posting::Refund(third.into_refund().unwrap());
    store.commit(vec![refund], NOON).await.unwrap();
    let stored = || -> Option<String> {
        connection.query_row("SELECT returned FROM route_volume", [], |row| row.get(0)).unwrap()
    };
    assert_eq!((volume().await, stored().as_deref()), (of_month(3, "5:1"), Some("682;5:1")));
    // A program of version 16 that still runs keeps what it does not know. In another month that is ignored.
    connection.execute_batch("UPDATE route_volume SET month = 681, requests = 7").unwrap();
    assert_eq!(volume().await, Volume { month: Month::from_unix_months(681), ..of_month(7, "") });
    assert_eq!(post(&store, request).await.unwrap().charged, Credits::ZERO);
    assert_eq!((volume().await, stored()), (of_month(1, ""), None));
    connection.execute_batch("UPDATE route_volume SET returned = '5:1'").unwrap();
    assert!(matches!(store.volumes(&id).await, Err(StoreError::Corrupt(_))));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[test]
fn an_up_to_date_database_is_opened_as_it_is() {
    let (_folder, file) = database_path();
    drop(write_version_1(&file));
    let schema = || {
        let connection = rusqlite::Connection::open(&file).unwrap();
        let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        let sql = "SELECT group_concat(sql, ';' ORDER BY name) FROM sqlite_schema";
        (version, connection.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap())
    };
    drop(SqliteStore::open(&file).unwrap());
    let migrated = schema();
    // SQLite had 18 versions before the shared schema.
    assert_eq!(usize::try_from(migrated.0), Ok(18 + metering_sql::schema::STEPS.len()));
    drop(SqliteStore::open(&file).unwrap());
    assert_eq!(schema(), migrated);
}
