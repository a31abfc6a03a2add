//! Locks with a timeout.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::client::access::private_file::FileLock;
use crate::failure::Failure;

/// How often to try.
const PAUSE: Duration = Duration::from_millis(50);

/// Takes a lock as soon as it is free.
///
/// # Errors
/// [`Failure::Conflict`] when it is not free in time.
pub(super) async fn wait_for_lock(path: &Path, timeout: Duration, doing: &str) -> Result<FileLock, Failure> {
    let began = Instant::now();
    loop {
        match FileLock::acquire(path.to_owned(), doing) {
            Err(Failure::Conflict(_)) if began.elapsed() < timeout => tokio::time::sleep(PAUSE).await,
            taken => return taken,
        }
    }
}
