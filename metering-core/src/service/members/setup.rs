//! The parts that a service needs for members of accounts.

use std::sync::Arc;

use crate::store::MemberStore;

/// The settings of [`Service::with_members`](crate::Service::with_members).
#[derive(Debug, Clone)]
pub(in crate::service) struct MemberSetup {
    pub(in crate::service) store: Arc<dyn MemberStore>,
    pub(super) sign_in_url: Arc<str>,
}
