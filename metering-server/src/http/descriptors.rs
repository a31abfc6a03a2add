//! File descriptors: each connection takes one, and the operating system allows so many per process.

use std::num::NonZeroUsize;

/// For the database, the log, listening sockets and what is left of closing connections.
const RESERVE: usize = 256;

/// Raises the process's limit as far as `wanted` connections need it and the system allows, and returns how many
/// connections fit. `per_connection` is 2 where each may need another one, to an upstream.
pub(crate) fn connections_that_fit(wanted: NonZeroUsize, per_connection: usize) -> NonZeroUsize {
    let needed = wanted.get().saturating_mul(per_connection).saturating_add(RESERVE);
    let limit = match raise(needed) {
        Ok(limit) => limit,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files is unknown; http.max_connections may be too high for it");
            return wanted;
        }
    };
    let fitting = fitting(limit, per_connection).min(wanted);
    if fitting < wanted {
        tracing::warn!(
            open_files = limit,
            connections = fitting,
            "http.max_connections is {wanted}, more than the limit of open files (ulimit -n) allows; fewer are served"
        );
    }
    fitting
}

fn fitting(limit: usize, per_connection: usize) -> NonZeroUsize {
    // Even of a very low limit, half is left for connections.
    let usable = limit.saturating_sub(RESERVE).max(limit / 2);
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
        // open files, descriptors of a connection, connections
        let table = [(1_024, 1, 768), (1_024, 2, 384), (20_000, 2, 9_872), (64, 1, 32), (1, 2, 1), (0, 1, 1)];
        for (limit, per_connection, connections) in table {
            assert_eq!(fitting(limit, per_connection).get(), connections, "{limit} {per_connection}");
        }
    }
}
