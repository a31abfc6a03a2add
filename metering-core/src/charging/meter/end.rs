/// How a meter ended.
///
/// ```
/// use metering_core::charging::MeterEnd;
/// use metering_core::{MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let server = std::future::ready(());
/// tokio::select! {
///     biased;
///     () = server => {} // it was asked to stop, and has finished its requests
///     MeterEnd::StoreBroken = service.meter().ended() => return Err("the store broke; open it again".into()),
/// }
/// assert_eq!(service.meter().drain().await, MeterEnd::Drained);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterEnd {
    /// It was drained, or dropped.
    Drained,
    /// Its store [must be reopened](crate::StoreError::must_reopen), so the process must stop.
    StoreBroken,
}
