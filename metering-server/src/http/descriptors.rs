//! File descriptor limits: each connection needs one, and the operating system limits them per process.

use std::num::NonZeroUsize;

/// Reserved for the database, the log, listening sockets and closing connections.
const RESERVED: usize = 256;

/// Raises the process's limit to fit `wanted` connections, as far as the system allows, and returns how many fit.
/// `per_connection` is 2 when each connection may need another one to an upstream.
pub(crate) fn connections_that_fit(wanted: NonZeroUsize, per_connection: usize) -> NonZeroUsize {
    let needed = wanted.get().saturating_mul(per_connection).saturating_add(RESERVED);
    let limit = match raise(needed) {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(%error, "the open file limit is unknown; http.max_connections may exceed it");
            return wanted;
        }
    };
    let fitting = fitting(limit, per_connection).min(wanted);
    if fitting < wanted {
        tracing::warn!(
            open_files = limit,
            connections = fitting,
            "http.max_connections is {wanted}, more than the open file limit (ulimit -n) allows; serving fewer connections"
        );
    }
    fitting
}

fn fitting(limit: usize, per_connection: usize) -> NonZeroUsize {
    // Even with a very low limit, leave half for connections.
    let usable = limit.saturating_sub(RESERVED).max(limit / 2);
    NonZeroUsize::new(usable / per_connection).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(unix)]
fn raise(needed: usize) -> std::io::Result<usize> {
    let (soft, hard) = rlimit::getrlimit(rlimit::Resource::NOFILE)?;
    let needed = u64::try_from(needed).unwrap_or(u64::MAX);
    let limit = if soft < needed.min(hard) { rlimit::increase_nofile_limit(needed.min(hard))? } else { soft };
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(not(unix))]
fn raise(_: usize) -> std::io::Result<usize> {
    Ok(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_room_for_everything_else() {
        // open file limit, descriptors per connection, connections
        let table = [(1_024, 1, 768), (1_024, 2, 384), (20_000, 2, 9_872), (64, 1, 32), (1, 2, 1), (0, 1, 1)];
        for (limit, per_connection, connections) in table {
            assert_eq!(fitting(limit, per_connection).get(), connections, "{limit} {per_connection}");
        }
    }
}
