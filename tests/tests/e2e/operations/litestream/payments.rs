//! Payments on a chain that were credited after the restored moment: none is lost, and none counts twice.

use metering_tests::chain::Chain;
use metering_tests::litestream::{Litestream, is_skipped};
use serde_json::json;

use super::{lose_disk, moment, restore};
use crate::support::shop::{Kind, STARTER, Shop, key_of};
use crate::support::wait::until;

#[test]
fn payments_after_the_restored_moment_are_credited_again_once() {
    metering_tests::skip_if!(is_skipped());
    let Some(mut shop) = Shop::with(Chain::setup(), "1", "watch = true\nwatch_from_block = 0") else { return };
    let litestream = Litestream::of(&shop.site, &[]);
    let replication = litestream.start();
    let [known, quoted, late] = [(); 3].map(|()| shop.customer());
    let key = shop.signed_up(Kind::Token, &known);
    let quote = shop.quote(Kind::Token, &quoted.address());
    replication.sync();
    let restored = moment();

    // A known wallet tops up; another pays a known quote; a third gets a quote and pays it.
    let top_up = shop.pay(Kind::Token, &known, STARTER);
    let hash = shop.pay(Kind::Token, &quoted, quote.units);
    let lost_key = key_of(&shop.claim(&quote, &hash).expect(200));
    let late_quote = shop.quote(Kind::Token, &late.address());
    let late_hash = shop.pay(Kind::Token, &late, late_quote.units);
    let late_key = key_of(&shop.claim(&late_quote, &late_hash).expect(200));
    until("the top-up is credited", || shop.balance(&key) == "23");
    shop.server.terminate();
    assert!(shop.server.wait().success());
    replication.stop();

    lose_disk(&shop.site);
    restore(&shop.site, &litestream, &["-timestamp", &restored]);
    assert_eq!(shop.accounts(), 1);
    shop.restart_with(&[]);
    // Found again: the first two, by the watcher, and the key of the second with its quote.
    until("the top-up is credited again", || shop.balance(&key) == "23");
    let new_key = key_of(&shop.claim(&quote, &hash).expect(200));
    assert_eq!(shop.balance(&new_key), "12.5");
    for unknown in [&lost_key, &late_key] {
        assert_eq!(shop.server.client_with(unknown).get("/credits/balance").status, 401);
    }
    // The third is left to the operator: its quote is no longer known.
    shop.wait_until_scanned();
    assert_eq!(shop.claim(&late_quote, &late_hash).status, 404);
    let listed = shop.listed(&[]);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!((&listed[0]["tx_hash"], &listed[0]["status"]), (&json!(late_hash), &json!("unknown_payer")));
    let account = shop.site.account("1");
    let _ = shop.assigned(&late_hash, &account.org_id, &["--plan", "starter"]);
    assert_eq!(shop.balance(&account.api_key), "11.5");

    // None counts again.
    for (key, hash) in [(&key, &top_up), (&new_key, &hash), (&account.api_key, &late_hash)] {
        let again = shop.top_up(key, Kind::Token, hash, None);
        assert!(matches!(again.status, 200 | 409), "{}", again.text());
    }
    assert_eq!(shop.claim(&quote, &hash).expect(409).error(), "already_claimed");
    let balances = [&key, &new_key, &account.api_key].map(|key| shop.balance(key));
    assert_eq!(balances, ["23", "12.5", "11.5"]);
}
