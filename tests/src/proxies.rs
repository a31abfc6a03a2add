//! Real reverse proxies with files of the repository, in which only the ports and paths are replaced.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::daemon::{Daemon, folder};
use crate::ports::free_address;

/// The script that HAProxy's file loads, next to it.
const SCRIPT: &str = "authorize.lua";

/// Which proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// nginx.
    Nginx,
    /// HAProxy.
    Haproxy,
    /// Caddy.
    Caddy,
    /// Envoy.
    Envoy,
}

/// The placeholders in the files, and their values.
#[derive(Debug, Clone)]
pub struct Places {
    /// The metering server, which they have at port 8787.
    pub metering: SocketAddr,
    /// The service, which they have at port 9000.
    pub service: SocketAddr,
    /// Other texts of the files, each with its replacement.
    pub texts: Vec<(&'static str, String)>,
}

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct Proxy {
    daemon: Daemon,
    address: SocketAddr,
}

/// A file of `deploy/proxies`.
#[must_use]
pub fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/proxies").join(name)
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Nginx, Self::Haproxy, Self::Caddy, Self::Envoy];

    /// The file of `deploy/proxies` that has it ask metering.
    #[must_use]
    pub fn file(self) -> &'static str {
        match self {
            Self::Nginx => "nginx.conf",
            Self::Haproxy => "haproxy.cfg",
            Self::Caddy => "Caddyfile",
            Self::Envoy => "envoy.yaml",
        }
    }

    /// Its display name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Nginx => "nginx",
            Self::Haproxy => "HAProxy",
            Self::Caddy => "Caddy",
            Self::Envoy => "Envoy",
        }
    }
}

impl Proxy {
    /// Starts a proxy with this file, and returns once it listens.
    ///
    /// # Errors
    /// If it does not; the message has its output.
    pub fn start(kind: Kind, program: &Path, file: &Path, places: &Places) -> Result<Self, String> {
        let (folder, address) = (folder("proxy", &std::env::temp_dir()).map_err(describe)?, free_address());
        let path = |name: &str| folder.path().join(name);
        let fill = |file: &Path| {
            let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
            let text = filled(text, kind, folder.path(), address, places);
            let name = path(&file.file_name().unwrap_or_default().to_string_lossy());
            fs::write(&name, text).map_err(describe)?;
            Ok::<_, String>(name.into_os_string())
        };
        let args: Vec<OsString> = match kind {
            Kind::Nginx => {
                // Workers of root would run as a user who may not read the folder.
                let user = if folder.path().metadata().map_err(describe)?.uid() == 0 { "user root;" } else { "" };
                let pid = format!("daemon off; {user} pid \"{}\"; error_log stderr;", path("pid").display());
                vec!["-c".into(), fill(file)?, "-g".into(), pid.into()]
            }
            Kind::Haproxy => {
                let script = file.with_file_name(SCRIPT);
                if script.is_file() {
                    fill(&script)?;
                }
                vec!["-db".into(), "-f".into(), fill(file)?]
            }
            Kind::Caddy => ["run", "--adapter", "caddyfile", "--config"]
                .map(OsString::from)
                .into_iter()
                .chain([fill(file)?])
                .collect(),
            Kind::Envoy => {
                let options = ["--disable-hot-restart", "--concurrency", "2", "-l", "warn", "-c"].map(OsString::from);
                options.into_iter().chain([fill(file)?]).collect()
            }
        };
        let daemon = Daemon::start(program, args, folder, &[address]).map_err(describe)?;
        Ok(Self { daemon, address })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its output.
    #[must_use]
    pub fn log(&self) -> String {
        self.daemon.log()
    }

    /// The ids of its processes.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.daemon.processes()
    }
}

fn describe(error: impl ToString) -> String {
    error.to_string()
}

/// The text of a file with this proxy's ports and paths.
fn filled(text: String, kind: Kind, folder: &Path, address: SocketAddr, places: &Places) -> String {
    let ports = [("8787", places.metering.port()), ("9000", places.service.port()), ("8080", address.port())];
    // Not one after the other: a port can contain the digits of another one.
    let text = ports.iter().fold(text, |text, (port, _)| text.replace(port, &format!("<{port}>")));
    let text = ports.iter().fold(text, |text, (port, real)| text.replace(&format!("<{port}>"), &real.to_string()));
    let text = text.replace("/etc/haproxy/", &format!("{}/", folder.display()));
    let text = places.texts.iter().fold(text, |text, (of_file, own)| text.replace(of_file, own));
    if kind != Kind::Nginx {
        return text;
    }
    let temporary = |what| format!("{what}_temp_path \"{}\";\n", folder.join(what).display());
    let all = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(temporary).concat();
    text.replacen("http {\n", &format!("http {{\naccess_log off;\n{all}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_and_paths_are_replaced_at_once() {
        let address = |port| SocketAddr::from(([127, 0, 0, 1], port));
        // The metering server's port is what the file has for the service.
        let places =
            Places { metering: address(9000), service: address(8080), texts: vec![("a secret", "another".to_owned())] };
        let text = "http {\nlisten 8080; ask :8787; to :9000; load /etc/haproxy/x; a secret }".to_owned();
        let filled = |kind| filled(text.clone(), kind, Path::new("/f"), address(8787), &places);
        assert_eq!(filled(Kind::Haproxy), "http {\nlisten 8787; ask :9000; to :8080; load /f/x; another }");
        assert!(
            filled(Kind::Nginx).starts_with("http {\naccess_log off;\nclient_body_temp_path \"/f/client_body\";\n")
        );
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let address = free_address();
        let places = Places { metering: address, service: address, texts: Vec::new() };
        let error = Proxy::start(Kind::Caddy, Path::new("caddy"), Path::new("/no/Caddyfile"), &places).unwrap_err();
        assert!(error.contains("/no/Caddyfile"), "{error}");
    }
}
