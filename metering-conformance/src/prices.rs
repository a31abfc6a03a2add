//! Contracts for price versions: which catalogue is in force when, and that numbers have no gaps.

use std::sync::Arc;

use metering_core::clock::Timestamp;
use metering_core::operators::Actor;
use metering_core::prices::{NewPriceVersion, PriceNumber, PriceRecorded, PriceVersion};
use metering_core::store::PriceStore;
use tokio::task::JoinSet;

use super::scene::{DAY, MINUTE, NOON};

const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);
const TASKS: u32 = 32;

/// A version from a configuration.
fn configured(catalogue: &str, since: Timestamp) -> NewPriceVersion {
    NewPriceVersion { catalogue: catalogue.into(), since, recorded_at: since, applied_by: None }
}

/// A version that an operator applies at noon.
fn applied(catalogue: &str, since: Timestamp) -> NewPriceVersion {
    let applied_by = Some(Actor::Operator("jo".parse().unwrap()));
    NewPriceVersion { catalogue: catalogue.into(), since, recorded_at: NOON, applied_by }
}

/// Records a version and expects success.
async fn recorded(store: &dyn PriceStore, new: NewPriceVersion) -> PriceVersion {
    match store.record_prices(new).await.unwrap() {
        PriceRecorded::Recorded(version) => version,
        other => panic!("{other:?}"),
    }
}

async fn numbers(store: &dyn PriceStore, from: Timestamp) -> Vec<u32> {
    let history = store.price_versions(from).await.unwrap();
    history.versions().iter().map(|version| version.number.0).collect()
}

async fn in_force(store: &dyn PriceStore, at: Timestamp) -> Option<u32> {
    store.price_versions(at).await.unwrap().in_force(at).map(|version| version.number.0)
}

/// A version is read with all its fields, and its catalogue by its number.
pub async fn a_version_is_found_as_it_was_recorded(store: Arc<dyn PriceStore>) {
    assert_eq!(store.price_versions(NOON).await.unwrap().versions(), []);
    let by_command_line = NewPriceVersion {
        applied_by: Some(Actor::CommandLine("kim".to_owned())),
        ..applied("third", NOON.saturating_add(DAY))
    };
    let new = [configured("first", NOON), applied("second", NOON.saturating_add(HOUR)), by_command_line];
    for (number, new) in (1..).map(PriceNumber).zip(new) {
        let version = recorded(&*store, new.clone()).await;
        assert_eq!(version, new.numbered(number));
        assert_eq!(store.price_versions(NOON).await.unwrap().versions().last(), Some(&version));
        assert_eq!(store.price_catalogue(number).await.unwrap(), Some(new.catalogue));
    }
    assert_eq!(store.price_catalogue(PriceNumber(4)).await.unwrap(), None);
    assert_eq!(store.price_catalogue(PriceNumber(u32::MAX)).await.unwrap(), None);
}

/// A catalogue of any size and characters is stored byte by byte.
pub async fn a_large_catalogue_is_stored_byte_by_byte(store: Arc<dyn PriceStore>) {
    let catalogue: Arc<str> = "{\"ä\": \"\\u0000 €\"}\r\n\t".repeat(100_000).into();
    let version = recorded(&*store, configured(&catalogue, NOON)).await;
    assert_eq!(store.price_catalogue(version.number).await.unwrap(), Some(catalogue));
}

/// The catalogue in force is not recorded a second time; after another one was, it is.
pub async fn the_same_catalogue_is_recorded_once(store: Arc<dyn PriceStore>) {
    let first = recorded(&*store, configured("first", NOON)).await;
    let later = NOON.saturating_add(HOUR);
    for new in [configured("first", NOON), configured("first", later), applied("first", later)] {
        assert_eq!(store.record_prices(new).await.unwrap(), PriceRecorded::Unchanged(first.clone()));
    }
    recorded(&*store, configured("second", later)).await;
    recorded(&*store, configured("first", later)).await;
    assert_eq!(in_force(&*store, later).await, Some(3), "the last of the same time");
    assert_eq!(numbers(&*store, NOON).await, [1, 2, 3]);
}

/// Reading from a time returns the version in force then, and all later ones.
pub async fn only_what_is_in_force_or_later_is_read(store: Arc<dyn PriceStore>) {
    for (number, hours) in [(1, 0), (2, 1), (3, 2), (4, 3)] {
        recorded(&*store, configured(&format!("{number}"), NOON.saturating_add(HOUR * hours))).await;
    }
    // hours after noon, numbers
    let table: [(u32, &[u32]); 5] = [(0, &[1, 2, 3, 4]), (1, &[2, 3, 4]), (2, &[3, 4]), (3, &[4]), (48, &[4])];
    for (hours, expected) in table {
        assert_eq!(numbers(&*store, NOON.saturating_add(HOUR * hours)).await, expected, "{hours}");
    }
    assert_eq!(numbers(&*store, NOON.saturating_add(MINUTE)).await, [1, 2, 3, 4]);
    assert_eq!(numbers(&*store, NOON.saturating_sub(MINUTE)).await, [1, 2, 3, 4]);
    assert_eq!(in_force(&*store, NOON.saturating_sub(MINUTE)).await, None);
}

/// Until an applied version takes effect, catalogues of configurations are taken; from then on they are not.
pub async fn files_are_not_taken_once_an_applied_version_is_in_force(store: Arc<dyn PriceStore>) {
    recorded(&*store, configured("file", NOON)).await;
    let from = NOON.saturating_add(HOUR);
    let version = recorded(&*store, applied("applied", from)).await;
    recorded(&*store, configured("another file", NOON.saturating_add(MINUTE))).await;
    assert_eq!(in_force(&*store, from.saturating_sub(MINUTE)).await, Some(3));
    for since in [from, from.saturating_add(DAY)] {
        assert_eq!(in_force(&*store, since).await, Some(2));
        for file in ["file", "applied"] {
            let refused = store.record_prices(configured(file, since)).await.unwrap();
            assert_eq!(refused, PriceRecorded::AppliedInForce(version.clone()), "{file}");
        }
    }
    recorded(&*store, applied("file", from.saturating_add(DAY))).await;
    assert_eq!(numbers(&*store, NOON).await, [1, 2, 3, 4]);
}

/// A version that has not taken effect can be cancelled, once; its number is not used again.
pub async fn a_cancelled_version_never_takes_effect(store: Arc<dyn PriceStore>) {
    recorded(&*store, configured("file", NOON)).await;
    let from = NOON.saturating_add(HOUR);
    let version = recorded(&*store, applied("applied", from)).await;
    let now = NOON.saturating_add(MINUTE);
    let cancelled = PriceVersion { cancelled_at: Some(now), ..version.clone() };
    assert_eq!(store.cancel_prices(version.number, now).await.unwrap(), Some(cancelled.clone()));
    assert_eq!(store.cancel_prices(version.number, NOON).await.unwrap(), Some(cancelled.clone()), "a second time");
    assert_eq!(store.price_versions(NOON).await.unwrap().versions().last(), Some(&cancelled));
    assert_eq!(in_force(&*store, from).await, Some(1));
    assert_eq!(store.cancel_prices(PriceNumber(3), NOON).await.unwrap(), None);

    let next = recorded(&*store, applied("applied", from)).await;
    assert_eq!(next.number, PriceNumber(3));
    assert_eq!(store.cancel_prices(next.number, from).await.unwrap(), Some(next.clone()), "it is in force");
    assert_eq!(in_force(&*store, from).await, Some(3));
    assert_eq!(store.cancel_prices(PriceNumber::FIRST, now).await.unwrap().unwrap().cancelled_at, None);
}

/// Of two versions applied for the same time, one is refused.
pub async fn two_versions_are_not_applied_for_the_same_time(store: Arc<dyn PriceStore>) {
    let from = NOON.saturating_add(HOUR);
    let first = recorded(&*store, applied("first", from)).await;
    let second = store.record_prices(applied("second", from)).await.unwrap();
    assert_eq!(second, PriceRecorded::SameTime(first));
    recorded(&*store, applied("second", from.saturating_add(MINUTE))).await;
    assert_eq!(numbers(&*store, NOON).await, [1, 2]);
}

/// Many record at the same time: each distinct catalogue gets one number, without gaps, and equal ones share it.
pub async fn concurrent_records_get_numbers_without_gaps(store: Arc<dyn PriceStore>) {
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = Arc::clone(&store);
        // Pairs with the same catalogue and time.
        let new = applied(&format!("{}", task / 2), NOON.saturating_add(MINUTE * (task / 2)));
        tasks.spawn(async move { store.record_prices(new).await.unwrap() });
    }
    let (mut recorded, mut unchanged) = (Vec::new(), 0);
    for outcome in tasks.join_all().await {
        match outcome {
            PriceRecorded::Recorded(version) => recorded.push(version.number.0),
            PriceRecorded::Unchanged(_) => unchanged += 1,
            other => panic!("{other:?}"),
        }
    }
    recorded.sort_unstable();
    assert_eq!(recorded, (1..=TASKS / 2).collect::<Vec<_>>());
    assert_eq!(unchanged, TASKS / 2);
    assert_eq!(numbers(&*store, NOON).await, recorded);
}
