//! A real proxy with its file of `deploy/proxies`, in which only the ports and paths are replaced.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use metering_tests::postgres::free_port;
use metering_tests::{skipped, venv};
use tempfile::TempDir;

/// Set by `./test.sh` where the proxies are not installed.
const SKIP: &str = "METERING_TESTS_SKIP_PROXIES";

/// How long a proxy may take to listen.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Ends the proxy when the test's process ends, however it ends.
const WATCHER: &str = r#"log=$1; shift; "$@" >"$log" 2>&1 & proxy=$!; read -r end; kill -TERM "$proxy"; wait "$proxy""#;

/// Which proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Nginx,
    NginxSettling,
    Caddy,
    Haproxy,
    Envoy,
}

/// A running proxy. Dropping it ends it.
pub(super) struct Proxy {
    watcher: Child,
    address: SocketAddr,
    folder: TempDir,
}

/// Whether tests with proxies are disabled.
#[track_caller]
pub(super) fn is_skipped() -> bool {
    skipped::by(SKIP)
}

impl Proxy {
    /// Starts a proxy in front of a service, which asks the metering server.
    #[track_caller]
    pub(super) fn start(kind: Kind, metering: SocketAddr, service: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let path = |name: &str| folder.path().join(name);
        let fill = |name: &str| {
            let ports = [("8787", metering.port()), ("9000", service.port()), ("8080", address.port())];
            let text = fs::read_to_string(deployed(name)).unwrap();
            // Not one after the other: a port can contain the digits of another one.
            let text = ports.iter().fold(text, |text, (port, _)| text.replace(port, &format!("<{port}>")));
            let text =
                ports.iter().fold(text, |text, (port, real)| text.replace(&format!("<{port}>"), &real.to_string()));
            let text = text.replace("/etc/haproxy/", &format!("{}/", folder.path().display()));
            let text = text.replace("change me: billing.internal_secret", super::settling::SECRET);
            let text = if kind == Kind::Nginx || kind == Kind::NginxSettling {
                let temporary = |what| format!("{what}_temp_path \"{}\";\n", path(what).display());
                let all = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(temporary).concat();
                text.replacen("http {\n", &format!("http {{\naccess_log off;\n{all}"), 1)
            } else {
                text
            };
            fs::write(path(name), text).unwrap();
            path(name)
        };
        let mut command = Command::new("sh");
        command.args(["-c", WATCHER, "sh"]).arg(path("log"));
        match kind {
            Kind::Nginx | Kind::NginxSettling => {
                // Workers of root would run as somebody who may not read the folder.
                let user = if folder.path().metadata().unwrap().uid() == 0 { "user root;" } else { "" };
                let pid = format!("daemon off; {user} pid \"{}\"; error_log stderr;", path("pid").display());
                let file = fill(if kind == Kind::Nginx { "nginx.conf" } else { "nginx-settle.conf" });
                command.arg(found("nginx")).arg("-c").arg(file).args(["-g", &pid]);
            }
            Kind::Caddy => {
                command.arg(found("caddy")).args(["run", "--adapter", "caddyfile", "--config"]).arg(fill("Caddyfile"));
                command.env("HOME", folder.path()).env("XDG_DATA_HOME", folder.path());
            }
            Kind::Haproxy => {
                fill("authorize.lua");
                command.arg(found("haproxy")).arg("-db").arg("-f").arg(fill("haproxy.cfg"));
            }
            Kind::Envoy => {
                command.arg(venv::program("proxies-venv", "envoy")).arg("-c").arg(fill("envoy.yaml"));
                command.args(["--disable-hot-restart", "--concurrency", "2", "-l", "warn"]);
            }
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let proxy = Self { watcher: command.spawn().unwrap(), address, folder };
        proxy.wait();
        proxy
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has written.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    #[track_caller]
    fn wait(&self) {
        let started = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            assert!(started.elapsed() < START_TIMEOUT, "the proxy does not listen: {}", self.log());
            thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The watcher ends the proxy at the end of its input.
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// A file of `deploy/proxies`.
fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/proxies").join(name)
}

/// A program that Debian may install where only root's `PATH` looks.
fn found(name: &str) -> PathBuf {
    let system = Path::new("/usr/sbin").join(name);
    if system.is_file() { system } else { name.into() }
}
