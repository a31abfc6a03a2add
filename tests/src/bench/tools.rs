//! Programs of others that the benchmark uses where they are installed.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Failure;

/// Where Debian installs servers; a user's PATH may not include it.
const SERVER_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The programs that are installed.
#[derive(Debug)]
pub(super) struct Tools {
    /// The load generator.
    pub(super) wrk: Option<PathBuf>,
    /// The proxy to compare the gateway with, and the upstream behind both.
    pub(super) nginx: Option<PathBuf>,
    /// The database to compare durable charges with, and its load generator.
    pub(super) redis: Option<RedisPrograms>,
}

/// Redis needs both of its programs.
#[derive(Debug)]
pub(super) struct RedisPrograms {
    pub(super) server: PathBuf,
    pub(super) benchmark: PathBuf,
}

impl Tools {
    /// Looks for all of them.
    pub(super) fn find() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<_> =
            env::split_paths(&path).chain(SERVER_FOLDERS.iter().map(|folder| Path::new(folder).to_owned())).collect();
        Self::find_in(&folders)
    }

    fn find_in(folders: &[PathBuf]) -> Self {
        let find = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let redis = find("redis-server").zip(find("redis-benchmark"));
        Self {
            wrk: find("wrk"),
            nginx: find("nginx"),
            redis: redis.map(|(server, benchmark)| RedisPrograms { server, benchmark }),
        }
    }

    /// Says what is missing, what that means for the tables, and which Debian package has it.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for line in self.missing() {
            writeln!(out, "\n**{line}**")?;
        }
        Ok(())
    }

    fn missing(&self) -> Vec<&'static str> {
        let lines = [
            (
                self.wrk.is_none(),
                "wrk is missing (Debian package wrk): the benchmark's own load generator takes more of the cores.",
            ),
            (
                self.nginx.is_none(),
                "nginx is missing (Debian package nginx-light): there are no rows for it, and the upstream behind the \
                 gateway is bare hyper.",
            ),
            (
                self.redis.is_none(),
                "redis-server or redis-benchmark is missing (Debian packages redis-server and redis-tools): there are \
                 no columns for Redis.",
            ),
        ];
        lines.into_iter().filter_map(|(missing, line)| missing.then_some(line)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_are_reported_with_their_package() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folders = [first.path().to_owned(), second.path().to_owned()];
        let install = |folder: &Path, name: &str| std::fs::write(folder.join(name), "").unwrap();
        let missing = |folders: &[PathBuf]| {
            let mut out = Vec::new();
            Tools::find_in(folders).write(&mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        for package in ["package wrk", "package nginx-light", "packages redis-server and redis-tools"] {
            assert!(missing(&folders).contains(package), "{package}");
        }
        install(first.path(), "redis-server");
        assert!(missing(&folders).contains("redis"));
        install(second.path(), "redis-benchmark");
        install(second.path(), "wrk");
        install(second.path(), "nginx");
        assert_eq!(missing(&folders), "");
        assert_eq!(Tools::find_in(&folders).wrk, Some(second.path().join("wrk")));
    }
}
