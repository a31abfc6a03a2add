//! All parts of the storage contract together.

use crate::store::{
    AuthorizationStore, EventStore, ImportStore, OperatorStore, PaymentStore, PriceStore, RefillStore, SignupStore,
};

/// A store for everything that a service can offer. Every type that has all parts of the contract is one.
///
/// ```
/// use std::sync::Arc;
///
/// use metering_core::service::SignupSettings;
/// use metering_core::{FullStore, Service};
/// use metering_sqlite::SqliteStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), metering_core::StoreError> {
/// let store: Arc<dyn FullStore> = Arc::new(SqliteStore::in_memory()?); // or another backend, by the configuration
/// let service = Service::with_defaults(store.clone()).with_signup(store, SignupSettings::default());
/// # assert!(service.pending_signup("BCDF-GHJK").await.is_err());
/// # Ok(())
/// # }
/// ```
pub trait FullStore:
    PaymentStore + SignupStore + OperatorStore + RefillStore + EventStore + AuthorizationStore + ImportStore + PriceStore
{
}

impl<S> FullStore for S where
    S: PaymentStore
        + SignupStore
        + OperatorStore
        + RefillStore
        + EventStore
        + AuthorizationStore
        + ImportStore
        + PriceStore
{
}
