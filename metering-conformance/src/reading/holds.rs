//! Compares holds with the model.

use metering_core::charging::Hold;
use metering_core::clock::Timestamp;
use metering_core::store::FullStore;

use super::super::model::Model;

/// Holds in an order that does not depend on which of two equal times comes first.
fn by_id(mut holds: Vec<Hold>) -> Vec<Hold> {
    holds.sort_by_key(|hold| hold.id);
    holds
}

/// Compares every hold, the open ones of each account, and those whose lease has ended.
pub(super) async fn holds_agree(store: &dyn FullStore, model: &Model, now: Timestamp) {
    let mut expired = Vec::new();
    for owner in &model.owners {
        for hold in &owner.holds {
            assert_eq!(store.hold(&hold.id).await.unwrap().as_ref(), Some(hold), "a hold");
        }
        let open = store.open_holds(&owner.made.id, u32::MAX).await.unwrap();
        assert!(open.is_sorted_by(|first, next| first.created_at >= next.created_at), "open holds are newest first");
        let expected: Vec<_> = owner.open_holds().cloned().collect();
        expired.extend(expected.iter().filter(|hold| hold.expires_at <= now).cloned());
        assert_eq!(by_id(open), by_id(expected), "the open holds of an account");
    }
    let found = store.expired_holds(now, u32::MAX).await.unwrap();
    assert!(found.is_sorted_by_key(|hold| hold.expires_at), "expired holds are sorted by the end of their lease");
    assert_eq!(by_id(found), by_id(expired), "the expired holds");
}
