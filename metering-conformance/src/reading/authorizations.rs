//! Compares authorizations with the model.

use metering_core::store::AuthorizationStore;

use super::super::authorization_scene::signed;
use super::super::model::Model;
use super::super::operation::AUTHORIZATIONS;

/// Compares every authorization that operations can store.
pub(crate) async fn authorizations_agree(store: &dyn AuthorizationStore, model: &Model) {
    for id in (0..AUTHORIZATIONS).map(|number| signed(number).id()) {
        assert_eq!(store.authorization(&id).await.unwrap(), model.authorization(&id), "authorization {id:?}");
    }
}
