//! Memory and processor time of processes, from `/proc`.

use std::fs;
use std::time::Duration;

use crate::load::busy::on_processor;

/// The kernel reports processor time in hundredths of a second, regardless of its own clock.
const TICK: Duration = Duration::from_millis(10);

/// A process's children, their children, and so on.
pub(crate) fn descendants(id: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let children = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children = children.flat_map(|children| ids(&children)).collect::<Vec<_>>();
    children.into_iter().flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// The resident memory of all these processes, in bytes; `None` where one has ended.
pub(crate) fn memory(ids: &[u32]) -> Option<u64> {
    ids.iter().map(|id| resident_bytes(&fs::read_to_string(format!("/proc/{id}/status")).ok()?)).sum()
}

/// The processor time of all these processes so far; `None` where one has ended.
pub(crate) fn busy(ids: &[u32]) -> Option<Duration> {
    ids.iter().map(|id| busy_threads(*id)).sum()
}

/// The sum over its threads, which is more precise than the process's own figure.
fn busy_threads(id: u32) -> Option<Duration> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).ok()?;
    let times = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok());
    times.map(|schedstat| on_processor(&schedstat)).sum()
}

/// The processor time of this process's children that have ended.
pub(crate) fn reaped_time() -> Option<Duration> {
    reaped(&fs::read_to_string("/proc/self/stat").ok()?)
}

fn ids(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace().filter_map(|id| id.parse().ok()).collect()
}

fn resident_bytes(status: &str) -> Option<u64> {
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    resident.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1_024)
}

/// Fields 16 and 17 of `stat`: user and system time of ended children. The second field, the name, may hold spaces.
fn reaped(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let ticks = after_name.split(' ').skip(13).take(2).map(|ticks| ticks.parse::<u32>().ok()).sum::<Option<u32>>()?;
    Some(TICK * ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn fields_are_found() {
        assert_eq!(resident_bytes("Name:\tx\nVmHWM:\t 9 kB\nVmRSS:\t   1234 kB\n"), Some(1_234 * 1_024));
        assert_eq!(resident_bytes("Name:\tx\n"), None);
        assert_eq!(ids("12 345 \n"), [12, 345]);
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 11 12 130 14 20 0 1 0 500 600 70";
        assert_eq!(reaped(stat), Some(Duration::from_millis(1_440)));
        assert_eq!(reaped("7 (a) S 1"), Some(Duration::ZERO));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn descendants_are_found_with_memory_and_time() {
        let mut shell = Command::new("sh").args(["-c", "sh -c 'sleep 60 & wait' & wait"]).spawn().unwrap();
        let mut found = Vec::new();
        for _ in 0..500 {
            found = descendants(shell.id());
            if found.len() == 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(memory(&found) > Some(100_000) && busy(&found).is_some());
        for id in found {
            let _ = Command::new("kill").arg(id.to_string()).status();
        }
        let _ = shell.wait();
        assert_eq!((memory(&[shell.id()]), busy(&[shell.id()])), (None, None));
    }
}
