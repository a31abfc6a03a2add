//! An epoch for tests.

use metering_core::Timestamp;
use metering_core::store::{EpochReason, LogEpoch, LogSecret, Taken};

/// An epoch with this many leaves, all published, and the first bundle pruned.
pub(super) fn epoch(size: u64, root: [u8; 32]) -> LogEpoch {
    LogEpoch {
        number: 2,
        origin: "api.example.com/log/2".to_owned(),
        secret: LogSecret::new([7; 32]),
        reason: EpochReason::Init,
        previous: None,
        began_at: Timestamp::from_unix_millis(0),
        ended_at: None,
        size,
        root,
        minimum: 1,
        accounts: 1,
        taken: Taken::default(),
        swept_from: 0,
        checkpoint: Some((size, "note\n".to_owned())),
    }
}
