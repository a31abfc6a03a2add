//! The machine that the figures were measured on, without which they mean nothing.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::{Failure, format};

/// Writes the machine's line, and a warning if its figures would mislead.
pub(super) fn write(data_dir: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let cpu = cpu_model(&read("/proc/cpuinfo"));
    let cores = std::thread::available_parallelism()?;
    let memory = format::size(memory_bytes(&read("/proc/meminfo")));
    let kernel = read("/proc/sys/kernel/osrelease");
    let data_dir = data_dir.canonicalize().map_err(|error| format!("{}: {error}", data_dir.display()))?;
    let file_system = file_system_of(&read("/proc/mounts"), &data_dir);
    writeln!(out, "{cores} × {cpu}, {memory} of memory, Linux {}, data on {file_system}", kernel.trim())?;
    if matches!(file_system.as_str(), "tmpfs" | "ramfs" | "overlay") {
        writeln!(
            out,
            "\n**{file_system} may not keep flushed data: choose a directory on a disk with `--data-dir`.**"
        )?;
    }
    if cfg!(debug_assertions) {
        writeln!(out, "\n**This is a debug build: its figures mean nothing. Build with `--release`.**")?;
    }
    Ok(())
}

fn cpu_model(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
    let name = model.and_then(|line| line.split_once(':')).map(|(_, name)| name.trim());
    name.unwrap_or("unknown processor").to_owned()
}

fn memory_bytes(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes = total.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kibibytes.unwrap_or(0).saturating_mul(1_024)
}

/// The type of the file system that holds `path`: the deepest mount above it, and of several mounts at the same path
/// the last, which hides the others.
fn file_system_of(mounts: &str, path: &Path) -> String {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((Path::new(fields.next()?), fields.next()?))
    });
    let above = mounts.filter(|(point, _)| path.starts_with(point));
    let deepest = above.max_by_key(|(point, _)| point.components().count());
    deepest.map_or("an unknown file system", |(_, kind)| kind).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_and_memory_are_parsed_from_proc_files() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Example CPU @ 2.60GHz\nflags\t\t: a b\n\nmodel name\t: Other\n";
        assert_eq!(cpu_model(cpuinfo), "Example CPU @ 2.60GHz");
        assert_eq!(cpu_model(""), "unknown processor");
        assert_eq!(memory_bytes("MemTotal:       24684032 kB\nMemFree: 1 kB\n"), 24_684_032 * 1_024);
        assert_eq!(memory_bytes("MemFree: 1 kB\n"), 0);
    }

    #[test]
    fn path_belongs_to_its_deepest_mount() {
        let mounts = "/dev/vda / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/disk ext4 rw 0 0\n\
                      /dev/vdc /tmp/disk xfs rw 0 0\n";
        let table = [("/", "ext4"), ("/tmp", "tmpfs"), ("/tmp/x", "tmpfs"), ("/tmpx", "ext4"), ("/tmp/disk/x", "xfs")];
        for (path, kind) in table {
            assert_eq!(file_system_of(mounts, Path::new(path)), kind, "{path}");
        }
        assert_eq!(file_system_of("", Path::new("/")), "an unknown file system");
    }
}
