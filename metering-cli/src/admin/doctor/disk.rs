//! Whether the disk of a database file has space.

use std::path::Path;

use super::findings::Findings;

const CHECK: &str = "disk";

/// With less than this, the server soon stops charging. A checkpoint alone may need several dozen MiB.
#[cfg(unix)]
const TOO_LITTLE: u64 = 64 << 20;
/// Below this, warn.
#[cfg(unix)]
const LITTLE: u64 = 1 << 30;

#[cfg(unix)]
pub(super) fn check(folder: &Path, findings: &mut Findings) {
    match rustix::fs::statvfs(folder) {
        Ok(disk) => judge(folder, disk.f_bavail.saturating_mul(disk.f_frsize), (disk.f_files, disk.f_favail), findings),
        Err(error) => findings.warning(CHECK, format_args!("{}: {error}", folder.display()), "make the folder"),
    }
}

#[cfg(not(unix))]
pub(super) fn check(_: &Path, findings: &mut Findings) {
    findings.ok(CHECK, "not checked on this system");
}

/// Judges free bytes, and free inodes of all.
#[cfg(unix)]
fn judge(folder: &Path, free: u64, (inodes, free_inodes): (u64, u64), findings: &mut Findings) {
    let folder = folder.display();
    let advice = "free some space or enlarge the disk; docs/runbook.md, \"The disk is full\", says what can be deleted";
    let mib = free >> 20;
    match free {
        ..TOO_LITTLE => findings.problem(CHECK, format_args!("{mib} MiB are free at {folder}"), advice),
        TOO_LITTLE..LITTLE => findings.warning(CHECK, format_args!("only {mib} MiB are free at {folder}"), advice),
        // File systems that create inodes on demand report none.
        _ if inodes > 0 && free_inodes < 100 => {
            findings.problem(CHECK, format_args!("only {free_inodes} inodes are free at {folder}"), advice);
        }
        LITTLE.. => findings.ok(CHECK, format_args!("{mib} MiB are free at {folder}")),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn little_space_and_few_inodes_are_noticed() {
        // free bytes, inodes, free inodes, state
        let table = [
            (0, (9, 9), State::Problem),
            (TOO_LITTLE - 1, (9, 9), State::Problem),
            (TOO_LITTLE, (0, 0), State::Warning),
            (LITTLE, (0, 0), State::Ok),
            (LITTLE, (1_000, 99), State::Problem),
            (LITTLE, (1_000, 100), State::Ok),
        ];
        for (free, inodes, state) in table {
            let mut findings = Findings::default();
            judge(Path::new("/data"), free, inodes, &mut findings);
            assert_eq!(findings.of(CHECK).iter().map(|(state, _)| *state).collect::<Vec<_>>(), [state], "{free}");
        }
    }
}
