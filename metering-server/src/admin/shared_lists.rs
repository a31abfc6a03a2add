//! Lists that take long to read, read for all operators at once.

use std::sync::Arc;

use metering_admin::wire::RevokedPaymentDocument;
use metering_core::Timestamp;
use metering_core::operators::AccountRunway;

/// The lists, and when they were read.
pub(super) type SharedLists = tokio::sync::Mutex<Option<(Timestamp, Arc<Lists>)>>;

/// Lists that are read together.
#[derive(Debug, Default)]
pub(super) struct Lists {
    /// The accounts that run out.
    pub(super) running_out: Vec<AccountRunway>,
    /// The newest payments to refund.
    pub(super) to_refund: Vec<RevokedPaymentDocument>,
}
