//! The parts that a service needs for OAuth.

use std::sync::Arc;

use crate::oauth::ClientDocuments;
use crate::store::FullStore;

/// The settings of [`Service::with_oauth`](crate::Service::with_oauth).
#[derive(Debug, Clone)]
pub(in crate::service) struct OAuthSetup {
    pub(super) store: Arc<dyn FullStore>,
    pub(super) documents: Arc<dyn ClientDocuments>,
    pub(super) origins: Vec<String>,
}
