//! An account with requests of the month to routes with volume tiers.

use std::sync::Arc;

use metering_core::access::KeyHash;
use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{Outcome, Posting, VolumeTerms};
use metering_core::{Charge, Credits, Decision, FullStore, Store};

use crate::filling::{charge, grant};
use crate::fixture::{NOON, customer};

const TIERED: u8 = 12;
/// Its allowance is not used up before the move.
const SOME_LEFT: &str = "/a";
/// Its allowance is used up.
const NONE_LEFT: &str = "/Ä/b";

/// A request to a route whose first two requests of a month cost nothing.
async fn request(store: &dyn Store, path: &str) -> Credits {
    let tiers = Arc::new(VolumeTiers::new(vec![(2, Credits::ZERO)], Credits::BASE_CALL).unwrap());
    let Posting::Charge(charge) = charge(KeyHash::from_bytes([TIERED; 32]), path, None) else { panic!() };
    let charge = Charge { by_volume: Some(VolumeTerms { tiers, max_cost: None }), ..charge };
    match store.commit(vec![Posting::Charge(charge)], NOON).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => receipt.charged,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn fill(store: &dyn FullStore) {
    customer(store, TIERED, grant(10)).await;
    for path in [SOME_LEFT, NONE_LEFT, NONE_LEFT] {
        assert_eq!(request(store, path).await, Credits::ZERO);
    }
}

/// The allowance of before the move is neither lost nor given again.
pub(crate) async fn work_as_before(store: &dyn Store) {
    assert_eq!(request(store, NONE_LEFT).await, Credits::BASE_CALL);
    assert_eq!(request(store, SOME_LEFT).await, Credits::ZERO);
    assert_eq!(request(store, SOME_LEFT).await, Credits::BASE_CALL);
}
