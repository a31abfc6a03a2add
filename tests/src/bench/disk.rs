//! The speed of the disk alone: no charge that waits for its own flush can be faster.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::table::{Row, Table};
use super::{Arguments, Failure, format};
use crate::latency::Latencies;

/// The size of an SQLite page.
const PAGE: [u8; 4_096] = [0x5a; 4_096];

/// Measures the disk and writes its table.
pub(super) fn write(arguments: &Arguments, out: &mut dyn Write) -> Result<(), Failure> {
    let mut file = tempfile::tempfile_in(&arguments.data_dir)?;
    let (flushes, spent) = append_and_flush(&mut file, arguments.time)?;
    let mut table = Table::default();
    table.row(
        Row::default()
            .text("Disk", "4 KiB append and fdatasync")
            .rate("Per second", format::per_second(flushes.count(), spent))
            .latency("p50", flushes.p50())
            .latency("p99", flushes.p99()),
    );
    Ok(table.write("Disk", out)?)
}

/// How often per second the disk flushes, measured for `time`.
pub(super) fn flushes_per_second(data_dir: &Path, time: Duration) -> Result<f64, Failure> {
    let (flushes, spent) = append_and_flush(&mut tempfile::tempfile_in(data_dir)?, time)?;
    Ok(format::per_second(flushes.count(), spent))
}

fn append_and_flush(file: &mut File, time: Duration) -> Result<(Latencies, Duration), Failure> {
    let (mut samples, started) = (Latencies::default(), Instant::now());
    loop {
        let append = Instant::now();
        file.write_all(&PAGE)?;
        file.sync_data()?;
        samples.record(append.elapsed());
        let spent = started.elapsed();
        if spent >= time {
            return Ok((samples, spent));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flush_is_counted_and_its_page_written() {
        let mut file = tempfile::tempfile().unwrap();
        let (flushes, spent) = append_and_flush(&mut file, Duration::from_millis(20)).unwrap();
        assert!(spent >= Duration::from_millis(20));
        assert_eq!(file.metadata().unwrap().len(), 4_096 * u64::try_from(flushes.count()).unwrap());
    }
}
