//! The open file limit, which bounds how many streams fit.

use crate::bench::Failure;

/// For everything else that is open.
const RESERVED: u64 = 300;
/// This process has a stream's client and its upstream; a proxy has the other two ends.
const PER_STREAM: u64 = 2;

/// Raises this process's limit, which programs started from now on inherit, and returns how many of `wanted` streams
/// fit.
pub(super) fn streams_that_fit(wanted: usize) -> Result<usize, Failure> {
    let needed = u64::try_from(wanted)? * PER_STREAM + RESERVED;
    let (soft, _) = rlimit::getrlimit(rlimit::Resource::NOFILE)?;
    let limit = if soft < needed { rlimit::increase_nofile_limit(needed)? } else { soft };
    let streams = fitting(wanted, limit);
    if streams < wanted {
        eprintln!("streams: the open file limit (ulimit -n) of {limit} leaves room for {streams} of {wanted}");
    }
    Ok(streams)
}

fn fitting(wanted: usize, limit: u64) -> usize {
    let room = usize::try_from(limit.saturating_sub(RESERVED) / PER_STREAM).unwrap_or(usize::MAX);
    wanted.min(room.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_leave_room_for_everything_else() {
        // wanted, limit, streams
        for (wanted, limit, streams) in [(5_000, 20_000, 5_000), (5_000, 1_024, 362), (1, 0, 1), (9_850, 20_000, 9_850)]
        {
            assert_eq!(fitting(wanted, limit), streams, "{wanted} {limit}");
        }
    }
}
