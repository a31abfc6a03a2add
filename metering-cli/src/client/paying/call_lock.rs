//! Serializes runs that make the same call: each pays for itself, or continues an unfinished payment.

use std::time::Duration;

use crate::client::access::private_file::FileLock;
use crate::client::paying::call::Call;
use crate::client::paying::journal::Journal;
use crate::client::paying::lock::wait_for_lock;
use crate::failure::Failure;

/// How long to wait for another run of the same call.
const TURN_TIMEOUT: Duration = Duration::from_secs(180);

/// The lock that permits paying for a call. Held until its response has arrived.
#[derive(Debug)]
pub(super) struct CallLock(#[expect(dead_code, reason = "held, not read")] FileLock);

impl CallLock {
    /// Waits for other runs of this call. Unrelated calls may share one of the 256 locks, and wait too.
    pub(super) async fn take(journal: &Journal, call: &Call) -> Result<Self, Failure> {
        let slot = call.fingerprint.get(..2).unwrap_or_default();
        let path = journal.directory().join(format!("call-{slot}.lock"));
        wait_for_lock(&path, TURN_TIMEOUT, "paying for the same call").await.map(Self)
    }
}
