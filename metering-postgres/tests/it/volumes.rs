//! Volume tiers: no two requests have the same number in the month, no matter which nodes decide them and what happens
//! to their responses.

use std::sync::Arc;

use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{CountedRoute, HoldAction, Posting, Volume, VolumeTerms};
use metering_core::clock::Month;
use metering_core::{Charge, ClientSource, Credits, Receipt, Store, StoreError, UsageLine};
use metering_postgres::PostgresStore;
use metering_tests::postgres::run_in;
use tokio::task::JoinSet;

use crate::hold_scene::{GRANT, Scene, decided, hold};
use crate::lost_commits::NOON;
use crate::upgrade::{books_of_version, charge_of, upgraded};

/// Two requests for nothing, two for 5 atoms, and all others for 3.
pub(crate) fn tiers() -> Arc<VolumeTiers> {
    let atoms = Credits::from_atoms;
    Arc::new(VolumeTiers::new(vec![(2, atoms(0)), (4, atoms(5))], atoms(3)).unwrap())
}

pub(crate) fn by_volume(charge: Charge) -> Charge {
    charge.with_price(tiers().max()).with_by_volume(VolumeTerms { tiers: tiers(), max_cost: None })
}

/// `count` requests to the route of [`hold`].
pub(crate) fn counted(count: u32) -> (CountedRoute, Volume) {
    let (route_template, http_method) = ("/chat".into(), "POST".into());
    (
        CountedRoute { route_template, http_method },
        Volume { month: NOON.day().month(), requests: count, ..Volume::default() },
    )
}

fn request(scene: &Scene) -> Charge {
    by_volume(hold(&scene.key).with_hold(None))
}

impl Scene {
    fn node(&self, number: usize) -> &PostgresStore {
        if number.is_multiple_of(2) { &self.node } else { &self.other }
    }

    async fn volumes(&self) -> Vec<(CountedRoute, Volume)> {
        let volumes = self.node.volumes(&self.id).await.unwrap();
        assert_eq!(volumes, self.other.volumes(&self.id).await.unwrap());
        volumes
    }
}

/// Fails unless the requests have all numbers from 1, and each has the price for its number.
fn assert_numbered(receipts: &[Receipt]) {
    let mut priced: Vec<(u32, Credits)> =
        receipts.iter().map(|receipt| (receipt.volume.as_ref().unwrap().requests, receipt.charged)).collect();
    priced.sort_unstable();
    let expected: Vec<_> = (1..).take(receipts.len()).map(|number: u32| (number, tiers().price(number))).collect();
    assert_eq!(priced, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_fill_each_tier_once() {
    // 64 connections, of two nodes.
    let Some(scene) = Scene::new(GRANT, 32).await.map(Arc::new) else { return };
    let mut tasks = JoinSet::new();
    for place in 0..64 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move { decided(scene.node(place), request(&scene), NOON).await.unwrap() });
    }
    assert_numbered(&tasks.join_all().await);
    assert_eq!(scene.amounts().await, [GRANT - 2 * 5 - 60 * 3, 0, 2 * 5 + 60 * 3]);
    assert_eq!(scene.volumes().await, [counted(64)]);
    scene.verify().await;
}

/// Of every three requests that race, one is refunded and one is a hold that is released, by the other node.
#[tokio::test(flavor = "multi_thread")]
async fn places_are_given_back_to_all_nodes() {
    let Some(scene) = Scene::new(GRANT, 16).await.map(Arc::new) else { return };
    let mut tasks = JoinSet::new();
    for place in 0..48 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move {
            let (node, other) = (scene.node(place / 3), scene.node(place / 3 + 1));
            let charge = if place % 3 == 2 { by_volume(hold(&scene.key)) } else { request(&scene) };
            let receipt = decided(node, charge, NOON).await.unwrap();
            let posting = match place % 3 {
                0 => return receipt.charged.atoms(),
                1 => Posting::Refund(receipt.into_refund().unwrap()),
                _ => Posting::Hold(receipt.hold_update(HoldAction::Release).unwrap()),
            };
            other.commit(vec![posting], NOON).await.unwrap();
            0
        });
    }
    let used = tasks.join_all().await.into_iter().sum();
    assert_eq!(scene.amounts().await, [GRANT - used, 0, used]);
    let (route, volume) = scene.volumes().await.remove(0);
    assert_eq!((&route, volume.requests), (&counted(16).0, 16));
    // Once the returned places are taken again, the month's total is the price of its requests, no matter what was
    // refunded before.
    let mut again = 0;
    for number in 0..usize::try_from(volume.returned.count()).unwrap() {
        again += decided(scene.node(number), request(&scene), NOON).await.unwrap().charged.atoms();
    }
    let (_, volume) = scene.volumes().await.remove(0);
    assert!(volume.returned.is_empty(), "{volume:?}");
    let total: i64 = (1..=volume.requests).map(|number| tiers().price(number).atoms()).sum();
    assert_eq!(used + again, total);
    scene.verify().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_cuts_around_commits_count_every_request_once() {
    let Some(scene) = Scene::new(GRANT, 4).await.map(Arc::new) else { return };
    scene.link.cut_commits();
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let scene = Arc::clone(&scene);
        tasks.spawn(async move {
            let mut receipts = Vec::new();
            for _ in 0..16 {
                receipts.push(decided(&scene.node, request(&scene), NOON).await.unwrap());
            }
            receipts
        });
    }
    let receipts: Vec<Receipt> = tasks.join_all().await.into_iter().flatten().collect();
    assert!(scene.link.cuts() > 20, "{}", scene.link.cuts());
    assert_numbered(&receipts);
    scene.link.clear();
    assert_eq!(scene.volumes().await, [counted(64)]);
    scene.verify().await;
}

/// Charges at fixed prices, and holds that are captured, work where counts cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn other_batches_do_not_touch_counts() {
    let Some(scene) = Scene::new(GRANT, 2).await else { return };
    decided(&scene.node, request(&scene), NOON).await.unwrap();
    run_in(&scene.url, "ALTER TABLE route_volume RENAME TO elsewhere");
    for node in [&scene.node, &scene.other] {
        scene.charge(node).await;
        let id = scene.open(node).await;
        assert!(scene.update(node, id, HoldAction::CaptureFallback, NOON).await.changed);
    }
    assert!(scene.node.commit(vec![Posting::Charge(request(&scene))], NOON).await.is_err());
    run_in(&scene.url, "ALTER TABLE elsewhere RENAME TO route_volume");
    decided(&scene.node, request(&scene), NOON).await.unwrap();
    assert_eq!(scene.volumes().await, [counted(2)]);
    scene.verify().await;
}

/// One batch with several accounts' routes, refunds and releases: each has the count that the postings before it left.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_counts_in_order() {
    let Some(scene) = Scene::new(GRANT, 2).await else { return };
    let on = |template: &str| {
        let line =
            UsageLine { route_template: template.into(), http_method: "POST".into(), source: ClientSource::Direct };
        request(&scene).with_line(line)
    };
    for node in [&scene.node, &scene.other] {
        let paid = decided(node, by_volume(hold(&scene.key)), NOON).await.unwrap();
        let refunded = decided(node, on("/other"), NOON).await.unwrap();
        let before = scene.volumes().await;
        let batch = vec![
            Posting::Charge(request(&scene)),
            Posting::Hold(paid.hold_update(HoldAction::Release).unwrap()),
            Posting::Charge(request(&scene)),
            Posting::Refund(refunded.into_refund().unwrap()),
            Posting::Charge(on("/third")),
        ];
        node.commit(batch, NOON).await.unwrap();
        let requests = |volumes: &[(CountedRoute, Volume)]| volumes.iter().map(|of| of.1.requests).collect::<Vec<_>>();
        let (before, after) = (requests(&before), requests(&scene.volumes().await));
        let third = before.get(2).copied().unwrap_or_default();
        assert_eq!(after, [before[0] + 1, before[1] - 1, third + 1]);
    }
    scene.verify().await;
}

/// Nodes of version 13 keep working: their writes find everything that they name.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_of_version_thirteen_begin_with_the_first_tier() {
    let Some(url) = books_of_version(13) else { return };
    let store = upgraded(&url).await;
    let id = "org_x0000000000000000005".parse().unwrap();
    assert_eq!(store.volumes(&id).await.unwrap(), []);
    let receipts =
        [decided(&store, by_volume(charge_of(0)), NOON).await, decided(&store, by_volume(charge_of(0)), NOON).await];
    assert_numbered(&receipts.map(Result::unwrap));
    assert_eq!(store.verify().await.unwrap().discrepancies, []);
}

/// Nodes of version 14 keep working next to newer ones: they neither take returned places nor lose them, and a place
/// that they keep from an earlier month is ignored.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_of_version_fourteen_leave_returned_places() {
    let Some(url) = books_of_version(14) else { return };
    let month = NOON.day().month().unix_months();
    let written = "INSERT INTO route_volume (account, route_template, http_method, month, requests) VALUES \
                   (5, '/x', 'GET', $month, 2) ON CONFLICT (account, route_template, http_method) \
                   DO UPDATE SET month = excluded.month, requests = route_volume.requests + 1";
    let write_as_fourteen = |month: i64| run_in(&url, &written.replace("$month", &month.to_string()));
    write_as_fourteen(month);
    let store = PostgresStore::connect(&url.parse().unwrap()).await.unwrap();
    let id = "org_x0000000000000000005".parse().unwrap();
    let volume = async |store: &PostgresStore| store.volumes(&id).await.unwrap().remove(0).1;
    let stored = |requests, returned: &str| {
        let returned = returned.parse().unwrap();
        Volume { month: NOON.day().month(), requests, returned }
    };
    assert_eq!(volume(&store).await, stored(2, ""));
    let third = decided(&store, by_volume(charge_of(0)), NOON).await.unwrap();
    assert_eq!(third.charged, tiers().price(3));
    write_as_fourteen(month);
    store.commit(vec![Posting::Refund(third.into_refund().unwrap())], NOON).await.unwrap();
    write_as_fourteen(month);
    assert_eq!(volume(&store).await, stored(4, "5:1"));
    write_as_fourteen(month - 1);
    assert_eq!(volume(&store).await, Volume { month: Month::from_unix_months(month - 1), ..stored(5, "") });
    run_in(&url, "UPDATE route_volume SET returned = '5:1'");
    assert!(matches!(store.volumes(&id).await, Err(StoreError::Corrupt(_))));
}
