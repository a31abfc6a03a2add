//! An account with requests of the month to routes with volume tiers.

use std::sync::Arc;

use metering_core::access::KeyHash;
use metering_core::catalogue::VolumeTiers;
use metering_core::charging::{Outcome, Posting, VolumeTerms};
use metering_core::{Credits, Decision, FullStore, Receipt, Store};

use super::filling::{charge, grant};
use super::{NOON, customer};

const TIERED: u8 = 12;
/// Its allowance is not used up before the move.
const SOME_LEFT: &str = "/a";
/// Its allowance is used up.
const NONE_LEFT: &str = "/Ä/b";
/// Its allowance was used up when a free request was refunded.
const ONE_RETURNED: &str = "/c";

/// What a request costs.
async fn request(store: &dyn Store, path: &str) -> Credits {
    receipt(store, path).await.charged
}

/// A request to a route whose first two requests of a month cost nothing.
async fn receipt(store: &dyn Store, path: &str) -> Receipt {
    let tiers = Arc::new(VolumeTiers::new(vec![(2, Credits::ZERO)], Credits::BASE_CALL).unwrap());
    let Posting::Charge(charge) = charge(KeyHash::from_bytes([TIERED; 32]), path, None) else { panic!() };
    let charge = charge.with_by_volume(VolumeTerms { tiers, max_cost: None });
    match store.commit(vec![Posting::Charge(charge)], NOON).await.unwrap().remove(0) {
        Outcome::Decided(Decision::Accepted(receipt)) => receipt,
        other => panic!("{other:?}"),
    }
}

pub(crate) async fn fill(store: &dyn FullStore) {
    customer(store, TIERED, grant(10)).await;
    for path in [SOME_LEFT, NONE_LEFT, NONE_LEFT] {
        assert_eq!(request(store, path).await, Credits::ZERO);
    }
    let free = receipt(store, ONE_RETURNED).await;
    assert_eq!(request(store, ONE_RETURNED).await, Credits::ZERO);
    assert_eq!(request(store, ONE_RETURNED).await, Credits::BASE_CALL);
    store.commit(vec![Posting::Refund(free.into_refund().unwrap())], NOON).await.unwrap();
}
