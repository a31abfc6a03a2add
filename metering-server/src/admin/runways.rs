//! The accounts that run out, read for all operators at once.

use std::sync::Arc;

use metering_core::Timestamp;
use metering_core::operators::AccountRunway;

/// The accounts that run out, and when they were read.
pub(super) type Runways = tokio::sync::Mutex<Option<(Timestamp, Arc<[AccountRunway]>)>>;
