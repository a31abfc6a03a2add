//! Moves a store with counted routes to another database, and compares both.

use metering_core::charging::Posting;
use metering_core::{AccountId, ApiKey, Charge, Credits, NewAccount, Store, SystemRandomness};
use metering_postgres::PostgresStore;
use metering_sql::transfer::{Record, Section};
use metering_tests::postgres::{fresh_schema, run_in};

use crate::hold_scene::decided;
use crate::lost_commits::NOON;
use crate::moved::{moved, records};
use crate::volumes::{by_volume, tiers};

/// Sorted by bytes; every collation of a language sorts them in another order.
const ROUTES: [(&str, &str); 6] =
    [("/B", "GET"), ("/a", "GET"), ("/a", "POST"), ("/a b", "GET"), ("/a/b", "GET"), ("/é", "GET")];

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_moved_in_the_order_of_their_bytes_and_go_on() {
    let Some(url) = fresh_schema() else { return };
    let source = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    // As in a database whose own collation is a language's.
    run_in(
        &url,
        "ALTER TABLE route_volume ALTER COLUMN route_template TYPE TEXT COLLATE \"en-x-icu\", \
         ALTER COLUMN http_method TYPE TEXT COLLATE \"en-x-icu\"",
    );
    let mut keys = Vec::new();
    for _ in 0..2 {
        let (key, id) = (ApiKey::generate(&SystemRandomness), AccountId::generate(&SystemRandomness));
        source.create_account(NewAccount::new(id.clone(), "agent".parse().unwrap(), key.hash(), NOON)).await.unwrap();
        for (template, method) in ROUTES.iter().rev() {
            let charge = by_volume(Charge::new(&key, Credits::ZERO, method, template));
            source.commit(vec![Posting::Charge(charge)], NOON).await.unwrap();
        }
        keys.push((key, id));
    }
    // A refund's place moves too.
    for _ in 0..2 {
        let charge = by_volume(Charge::new(&keys[0].0, Credits::ZERO, "GET", "/a"));
        let receipt = decided(&source, charge, NOON).await.unwrap();
        source.commit(vec![Posting::Refund(receipt.into_refund().unwrap())], NOON).await.unwrap();
    }
    let target = moved(&source).await;

    for store in [&source, &target] {
        let found = records(store, Section::Volumes, 1).await;
        let found: Vec<_> = found
            .iter()
            .map(|record| match record {
                Record::Volume(record) => {
                    let (route, requests) = (&record.route, record.volume.requests);
                    (record.account.as_str(), &*route.route_template, &*route.http_method, requests)
                }
                record => panic!("{record:?}"),
            })
            .collect();
        let expected: Vec<_> = keys
            .iter()
            .flat_map(|(_, id)| ROUTES.map(|(template, method)| (id.as_str(), template, method, 1)))
            .collect();
        assert_eq!(found, expected);
        let listed = store.volumes(&keys[0].1).await.unwrap();
        let returned: Vec<_> = listed.iter().map(|(_, volume)| volume.returned.to_string()).collect();
        assert_eq!(returned.concat(), "0:1");
        let listed: Vec<_> = listed.iter().map(|(route, _)| (&*route.route_template, &*route.http_method)).collect();
        assert_eq!(listed, ROUTES);
    }
    let charge = by_volume(Charge::new(&keys[0].0, Credits::ZERO, "GET", "/a"));
    let receipt = decided(&target, charge, NOON).await.unwrap();
    assert_eq!((receipt.volume.unwrap().requests, receipt.charged), (2, tiers().price(2)));
    assert_eq!(target.verify().await.unwrap().discrepancies, []);
}
