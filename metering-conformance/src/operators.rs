//! Contracts for operators: each name is used once, and a token works until its operator is revoked.

use std::sync::Arc;

use metering_core::operators::{NewOperator, Operator, OperatorName, OperatorToken, OperatorTokenHash, Role};
use metering_core::random::SystemRandomness;
use metering_core::store::OperatorStore;

use super::scene::{DAY, MINUTE, NOON, racing};

const TASKS: usize = 32;

fn name(name: &str) -> OperatorName {
    name.parse().unwrap()
}

fn token() -> OperatorTokenHash {
    OperatorToken::generate(&SystemRandomness).hash()
}

fn new(of: &str, role: Role) -> NewOperator {
    NewOperator { name: name(of), role, token: token(), created_at: NOON }
}

/// Creates an operator and expects success.
async fn created(store: &dyn OperatorStore, new: NewOperator) -> Operator {
    store.create_operator(new).await.unwrap().expect("the name is free")
}

async fn by_token(store: &dyn OperatorStore, token: &OperatorTokenHash) -> Option<Operator> {
    store.operator_by_token(token).await.unwrap()
}

/// An operator is found by the token, with all fields as given, until revoked.
pub async fn an_operator_is_found_by_token_until_revoked(store: Arc<dyn OperatorStore>) {
    for (of, role) in [("jo", Role::Viewer), ("Jo.Smith-2_x@example.com", Role::Manager)] {
        let new = new(of, role);
        let operator = created(&*store, new.clone()).await;
        assert_eq!(operator, Operator::from(new.clone()));
        assert_eq!(by_token(&*store, &new.token).await, Some(operator));
    }
    let listed = store.operators().await.unwrap();
    let (revoked, other) = (&listed[1], &listed[0]);
    let later = NOON.saturating_add(MINUTE);
    let after = store.revoke_operator(&revoked.name, later).await.unwrap();
    assert_eq!(after, Some(Operator { revoked_at: Some(later), ..revoked.clone() }));
    assert_eq!(by_token(&*store, &revoked.token).await, None);
    assert_eq!(by_token(&*store, &other.token).await, Some(other.clone()));
    assert_eq!(store.operators().await.unwrap(), [other.clone(), after.unwrap()]);
}

/// A name is never given to a second operator, not even after a revocation. Names that differ in case are different.
pub async fn an_operators_name_is_used_once(store: Arc<dyn OperatorStore>) {
    let first = created(&*store, new("jo", Role::Viewer)).await;
    let second = new("jo", Role::Manager);
    assert_eq!(store.create_operator(second.clone()).await.unwrap(), None);
    assert_eq!(store.operators().await.unwrap(), std::slice::from_ref(&first));
    let revoked = store.revoke_operator(&first.name, NOON).await.unwrap().unwrap();
    assert_eq!(store.create_operator(second.clone()).await.unwrap(), None);
    assert_eq!(store.operators().await.unwrap(), [revoked]);
    assert_eq!(by_token(&*store, &second.token).await, None);
    created(&*store, NewOperator { name: name("Jo"), ..second }).await;
}

/// A token that an operator has or had is an error, and nothing changes.
pub async fn an_operators_token_in_use_is_an_error(store: Arc<dyn OperatorStore>) {
    let first = created(&*store, new("first", Role::Viewer)).await;
    let second = NewOperator { token: first.token, ..new("second", Role::Manager) };
    assert!(store.create_operator(second.clone()).await.is_err());
    assert_eq!(store.operators().await.unwrap(), std::slice::from_ref(&first));
    let revoked = store.revoke_operator(&first.name, NOON).await.unwrap().unwrap();
    assert!(store.create_operator(second.clone()).await.is_err());
    assert_eq!(store.operators().await.unwrap(), [revoked]);
    created(&*store, NewOperator { token: token(), ..second }).await;
}

/// Operators are listed by the bytes of their names, regardless of the database's collation.
pub async fn operators_are_listed_by_the_bytes_of_their_names(store: Arc<dyn OperatorStore>) {
    assert_eq!(store.operators().await.unwrap(), []);
    let sorted = ["-", ".", "0", "10", "9", "@", "A", "B", "Ba", "Z", "_", "a", "a-b", "a.b", "aB", "ab", "b", "z"];
    for of in sorted.iter().rev() {
        created(&*store, new(of, Role::Viewer)).await;
    }
    store.revoke_operator(&name("B"), NOON).await.unwrap();
    let listed = store.operators().await.unwrap();
    assert!(listed.iter().map(|operator| operator.name.as_str()).eq(sorted), "{listed:?}");
}

/// A second revocation keeps the time of the first.
pub async fn revoking_an_operator_twice_changes_nothing(store: Arc<dyn OperatorStore>) {
    let operator = created(&*store, new("jo", Role::Manager)).await;
    let first = store.revoke_operator(&operator.name, NOON.saturating_add(MINUTE)).await.unwrap();
    let second = store.revoke_operator(&operator.name, NOON.saturating_add(DAY)).await.unwrap();
    assert_eq!(second, first);
    assert_eq!(store.operators().await.unwrap(), [first.unwrap()]);
}

/// A new token replaces the old one, under the same name and role. A revoked operator gets none, and no operator gets
/// the token of another.
pub async fn a_rotated_operator_token_replaces_the_old_one(store: Arc<dyn OperatorStore>) {
    let (old, other) = (new("jo", Role::Manager), created(&*store, new("al", Role::Viewer)).await);
    let operator = created(&*store, old.clone()).await;
    let fresh = token();
    let rotated = store.rotate_operator_token(&operator.name, &fresh).await.unwrap();
    assert_eq!(rotated, Some(Operator { token: fresh, ..operator.clone() }));
    assert_eq!((by_token(&*store, &old.token).await, by_token(&*store, &fresh).await), (None, rotated.clone()));
    assert!(store.rotate_operator_token(&operator.name, &other.token).await.is_err());
    assert_eq!(store.operators().await.unwrap(), [other, rotated.unwrap()]);
    let revoked = store.revoke_operator(&operator.name, NOON).await.unwrap().unwrap();
    assert_eq!(store.rotate_operator_token(&operator.name, &token()).await.unwrap(), None);
    assert_eq!(store.operators().await.unwrap()[1], revoked);
}

/// Unknown names and tokens find nothing, and revoking an unknown name creates nothing.
pub async fn an_unknown_operator_is_none(store: Arc<dyn OperatorStore>) {
    created(&*store, new("jo", Role::Viewer)).await;
    for unknown in ["Jo", "j", "jo2", "jo@example.com"] {
        assert_eq!(store.revoke_operator(&name(unknown), NOON).await.unwrap(), None, "{unknown}");
        assert_eq!(store.rotate_operator_token(&name(unknown), &token()).await.unwrap(), None, "{unknown}");
    }
    assert_eq!(by_token(&*store, &token()).await, None);
    assert_eq!(store.operators().await.unwrap().len(), 1);
}

/// Many create an operator with the same name: one succeeds.
pub async fn concurrent_creations_of_one_operator_create_one(store: Arc<dyn OperatorStore>) {
    let results =
        racing(
            &store,
            0..TASKS,
            |store, _| async move { store.create_operator(new("jo", Role::Viewer)).await.unwrap() },
        )
        .await;
    let created: Vec<Operator> = results.into_iter().flatten().collect();
    assert_eq!(created.len(), 1);
    assert_eq!(store.operators().await.unwrap(), created);
    assert_eq!(by_token(&*store, &created[0].token).await.as_ref(), created.first());
}
