//! Third-party programs that the benchmark uses where they are installed.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::Failure;
use crate::proxies::Kind;
use crate::venv;

/// Where Debian installs servers; a user's PATH may not include it.
const SERVER_FOLDERS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The programs that are installed.
#[derive(Debug)]
pub(super) struct Tools {
    /// The load generator.
    pub(super) wrk: Option<PathBuf>,
    /// The proxy to compare the gateway with, and the upstream behind both.
    pub(super) nginx: Option<PathBuf>,
    /// Other proxies that ask before they forward.
    haproxy: Option<PathBuf>,
    caddy: Option<PathBuf>,
    envoy: Option<PathBuf>,
    /// The database to compare durable charges with, and its load generator.
    pub(super) redis: Option<RedisPrograms>,
    /// The C compiler, which builds the shim that delays flushes.
    pub(super) cc: Option<PathBuf>,
}

/// Redis needs both of its programs.
#[derive(Debug)]
pub(super) struct RedisPrograms {
    pub(super) server: PathBuf,
    pub(super) benchmark: PathBuf,
}

impl Tools {
    /// Looks for all tools.
    pub(super) fn find() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<_> =
            env::split_paths(&path).chain(SERVER_FOLDERS.iter().map(|folder| Path::new(folder).to_owned())).collect();
        Self { envoy: venv::find("proxies-venv", "envoy"), ..Self::find_in(&folders) }
    }

    fn find_in(folders: &[PathBuf]) -> Self {
        let find = |name: &str| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
        let redis = find("redis-server").zip(find("redis-benchmark"));
        Self {
            wrk: find("wrk"),
            nginx: find("nginx"),
            haproxy: find("haproxy"),
            caddy: find("caddy"),
            envoy: None,
            redis: redis.map(|(server, benchmark)| RedisPrograms { server, benchmark }),
            cc: find("cc"),
        }
    }

    /// The program of a proxy.
    pub(super) fn proxy(&self, kind: Kind) -> Option<&Path> {
        match kind {
            Kind::Nginx => self.nginx.as_deref(),
            Kind::Haproxy => self.haproxy.as_deref(),
            Kind::Caddy => self.caddy.as_deref(),
            Kind::Envoy => self.envoy.as_deref(),
        }
    }

    /// Lists what is missing, what that means for the tables, and which Debian package has it.
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
            (self.cc.is_none(), "cc is missing (Debian package gcc): part `overlap` is left out."),
            (self.haproxy.is_none(), "haproxy is missing (Debian package haproxy): there are no rows for HAProxy."),
            (self.caddy.is_none(), "caddy is missing (Debian package caddy): there are no rows for Caddy."),
            (
                self.envoy.is_none(),
                "envoy is missing (./test.sh installs it from a Python package): there are no rows for Envoy.",
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
        let packages = ["wrk", "nginx-light", "haproxy", "caddy", "gcc"].map(|name| format!("package {name}"));
        for package in packages.iter().map(String::as_str).chain(["packages redis-server and redis-tools", "./test.sh"])
        {
            assert!(missing(&folders).contains(package), "{package}");
        }
        install(first.path(), "redis-server");
        assert!(missing(&folders).contains("redis"));
        for program in ["redis-benchmark", "wrk", "nginx", "haproxy", "caddy", "cc"] {
            install(second.path(), program);
        }
        assert_eq!(missing(&folders).matches("missing").count(), 1, "Envoy is not among the system's programs");
        let tools = Tools { envoy: Some("envoy".into()), ..Tools::find_in(&folders) };
        assert_eq!(tools.missing(), [""; 0]);
        assert_eq!(tools.wrk, Some(second.path().join("wrk")));
        assert_eq!(tools.proxy(Kind::Caddy), Some(&*second.path().join("caddy")));
    }
}
