//! Postings that the database cannot store fail alone, without the rest of their batch.

use metering_core::access::KeyHash;
use metering_core::charging::{Outcome, Posting};
use metering_core::money::{LedgerKind, NewLedgerEntry};
use metering_core::{AccountId, Charge, ClientSource, Credits, Decision, NewAccount, Store, Timestamp, UsageLine};
use metering_postgres::PostgresStore;
use metering_tests::postgres::{Cluster, fresh_schema, is_skipped, run_in};

use crate::upgrade::BOOKS;
use crate::versions::version_two;

const NOON: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

fn account(number: u8) -> (AccountId, KeyHash) {
    (format!("org_{number:020}").parse().unwrap(), KeyHash::from_bytes([0x40 + number; 32]))
}

/// Creates an account that can pay for a thousand calls.
async fn customer(store: &PostgresStore, number: u8) {
    let (id, key) = account(number);
    let mut new = NewAccount::new(id, "agent".parse().unwrap(), key, NOON);
    let thousand = Credits::from_atoms(1_000 * Credits::BASE_CALL.atoms());
    new.entries = vec![NewLedgerEntry::new(LedgerKind::Adjustment, thousand, "Grant")];
    store.create_account(new).await.unwrap();
}

fn charge(number: u8, route: &str) -> Posting {
    let line = UsageLine { route_template: route.into(), http_method: "GET".into(), source: ClientSource::Cli };
    let (key, price) = (account(number).1, Credits::BASE_CALL);
    Posting::Charge(Charge::of(key, price, line))
}

fn is_accepted(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Decided(Decision::Accepted(_)))
}

async fn fresh() -> (PostgresStore, String) {
    let url = Cluster::shared().fresh_schema();
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    for number in 1..=4 {
        customer(&store, number).await;
    }
    (store, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_line_with_a_taken_number_is_charged_normally() {
    let Some(url) = fresh_schema() else { return };
    version_two(&url);
    run_in(&url, BOOKS);
    // The number that version 3 gave to GET /victim from the command line.
    run_in(&url, "INSERT INTO usage_line VALUES (4326713849605121601, '/attacker', 'GET', 'cli')");
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    customer(&store, 1).await;
    customer(&store, 2).await;
    let batch = vec![charge(1, "/victim"), charge(2, "/other"), charge(2, "/attacker"), charge(1, "/x")];
    let outcomes = store.commit(batch, NOON).await.unwrap();
    assert!(outcomes.iter().all(is_accepted), "{outcomes:?}");
    let shown = store.activity(&account(1).0, 10).await.unwrap();
    let mut routes: Vec<_> =
        shown.iter().filter_map(|entry| Some(entry.line.as_ref()?.route_template.clone())).collect();
    routes.sort_unstable();
    assert_eq!(routes, ["/victim".into(), "/x".into()]);
    assert_eq!(
        run_in(&url, "SELECT count(*) FROM usage_line WHERE route_template = '/x'"),
        "1",
        "the line keeps its number"
    );
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_agree_on_the_number_of_a_new_line() {
    if is_skipped() {
        return;
    }
    let (store, url) = fresh().await;
    let mut commits = Vec::new();
    for number in 1..=4 {
        let node = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
        commits.push(tokio::spawn(async move { node.commit(vec![charge(number, "/new")], NOON).await.unwrap() }));
    }
    for commit in commits {
        assert!(commit.await.unwrap().iter().all(is_accepted));
    }
    assert_eq!(run_in(&url, "SELECT count(*), count(DISTINCT digest) FROM usage_line"), "1|1");
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn text_refused_by_the_database_fails_only_its_posting() {
    if is_skipped() {
        return;
    }
    let (store, _) = fresh().await;
    for bad in [0, 3, 6] {
        let mut batch: Vec<_> = (0..7).map(|index| charge(1 + index % 4, "/good")).collect();
        batch[bad] = charge(1, "/bad\0");
        let outcomes = store.commit(batch, NOON).await.unwrap();
        for (index, outcome) in outcomes.iter().enumerate() {
            let expected = if index == bad { matches!(outcome, Outcome::Failed(_)) } else { is_accepted(outcome) };
            assert!(expected, "{index} of {outcomes:?}");
        }
    }
    let spent: i64 =
        store.accounts(None, 10).await.unwrap().items.iter().map(|account| account.totals.used.atoms()).sum();
    assert_eq!(spent, 3 * 6 * Credits::BASE_CALL.atoms(), "failed postings are not charged");
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn corrupt_row_blocks_charges_of_its_account_only() {
    if is_skipped() {
        return;
    }
    let (store, url) = fresh().await;
    store.commit((1..=4).map(|number| charge(number, "/good")).collect(), NOON).await.unwrap();
    let spoil = "UPDATE meter SET tail = 'nonsense' WHERE account = \
                 (SELECT id FROM account WHERE org_id = 'org_00000000000000000002')";
    run_in(&url, spoil);
    let outcomes = store.commit((1..=4).map(|number| charge(number, "/good")).collect(), NOON).await.unwrap();
    let accepted: Vec<bool> = outcomes.iter().map(is_accepted).collect();
    assert_eq!(accepted, [true, false, true, true], "{outcomes:?}");
}
