//! A machine with PostgreSQL and Patroni.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::processes::Processes;
use crate::client::Client;
use crate::database_proxy::DatabaseProxy;
use crate::ports::free_address;
use crate::postgres::{ServerUser, program};
use crate::response::Response;

pub(super) const PASSWORD: &str = "a password of the superuser";

/// A file of `deploy/patroni`.
pub(super) fn deployed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/patroni").join(name)
}

#[derive(Debug)]
pub(super) struct Machine {
    name: String,
    folder: PathBuf,
    postgres: SocketAddr,
    patroni: SocketAddr,
    /// Where others reach its PostgreSQL.
    to_postgres: DatabaseProxy,
    /// Where others reach its Patroni.
    to_patroni: DatabaseProxy,
    /// Where it reaches etcd.
    to_etcd: [DatabaseProxy; 3],
    /// Its Patroni, while it runs.
    process: Option<u32>,
    /// Whether it is neither paused nor cut off.
    is_reachable: bool,
}

impl Machine {
    pub(super) fn new(number: usize, cluster: &Path, etcd: &[SocketAddr; 3]) -> Self {
        let local = free_address;
        let (name, postgres, patroni) = (format!("db{number}"), local(), local());
        let user = ServerUser::find();
        let folder = cluster.join(&name);
        fs::create_dir(&folder).expect("a folder can be created");
        std::os::unix::fs::chown(&folder, Some(user.id), Some(user.group)).expect("the owner can be changed");
        Self {
            name,
            folder,
            postgres,
            patroni,
            to_postgres: DatabaseProxy::to(postgres),
            to_patroni: DatabaseProxy::to(patroni),
            to_etcd: etcd.map(DatabaseProxy::to),
            process: None,
            is_reachable: true,
        }
    }

    pub(super) fn start(&mut self, processes: &mut Processes) {
        let etcd = self.to_etcd.each_ref().map(|link| link.address().to_string());
        let mut patroni = ServerUser::find().command(Path::new("/usr/bin/patroni"));
        patroni
            .arg(deployed("config.yml"))
            .env("PATRONI_NAME", &self.name)
            .env("PATRONI_RESTAPI_LISTEN", self.patroni.to_string())
            .env("PATRONI_RESTAPI_CONNECT_ADDRESS", self.to_patroni.address().to_string())
            .env("PATRONI_POSTGRESQL_LISTEN", self.postgres.to_string())
            .env("PATRONI_POSTGRESQL_CONNECT_ADDRESS", self.to_postgres.address().to_string())
            .env("PATRONI_POSTGRESQL_DATA_DIR", self.data())
            .env("PATRONI_POSTGRESQL_BIN_DIR", program("postgres").parent().expect("a program is in a folder"))
            .env("PATRONI_POSTGRESQL_PGPASS", self.folder.join("pgpass"))
            .env("PATRONI_ETCD_HOSTS", etcd.join(","))
            // Otherwise it would use the addresses that etcd's members give for themselves.
            .env("PATRONI_ETCD_USE_PROXIES", "true")
            .env("PATRONI_SUPERUSER_PASSWORD", PASSWORD)
            .env("PATRONI_REPLICATION_PASSWORD", "a password of standbys");
        self.process = Some(processes.start(patroni, &self.folder.join("patroni.log")));
    }

    /// Ends Patroni and PostgreSQL immediately.
    pub(super) fn kill(&mut self, processes: &mut Processes) {
        // None of them may notice that another one has ended.
        self.signal("-STOP");
        self.signal("-KILL");
        if let Some(patroni) = self.process.take() {
            processes.forget(patroni);
        }
    }

    pub(super) fn pause(&mut self) {
        self.is_reachable = false;
        self.signal("-STOP");
    }

    pub(super) fn resume(&mut self) {
        self.signal("-CONT");
        self.is_reachable = true;
    }

    pub(super) fn cut_off(&mut self) {
        self.is_reachable = false;
        self.links().for_each(DatabaseProxy::fall_silent);
    }

    pub(super) fn reconnect(&mut self) {
        for link in self.links() {
            link.clear();
            // Lost messages do not arrive later.
            link.cut_all();
        }
        self.is_reachable = true;
    }

    /// Sends a signal to Patroni and to every PostgreSQL process. Parents are first, so that a parent that is stopped
    /// starts no other process.
    fn signal(&self, signal: &str) {
        let postmaster = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let postmaster = postmaster.lines().next().and_then(|id| id.parse().ok());
        for parent in self.process.into_iter().chain(postmaster) {
            // Children of a process that is killed cannot be found afterwards.
            let before = children(parent);
            send(signal, parent);
            before.into_iter().chain(children(parent)).for_each(|child| send(signal, child));
        }
    }

    /// Everything that connects it with the others.
    fn links(&self) -> impl Iterator<Item = &DatabaseProxy> {
        [&self.to_postgres, &self.to_patroni].into_iter().chain(&self.to_etcd)
    }

    /// Sends a request to its Patroni the way the other machines do.
    pub(super) fn get(&self, path: &str) -> Option<Value> {
        let response = self.ask(path)?;
        serde_json::from_slice(&response.body).ok()
    }

    /// Whether its Patroni responds with 200.
    pub(super) fn answers(&self, path: &str) -> bool {
        self.ask(path).is_some_and(|response| response.status == 200)
    }

    fn ask(&self, path: &str) -> Option<Response> {
        let client = Client::new(self.to_patroni.address());
        self.is_reachable.then(|| client.try_send("GET", path, None).ok())?
    }

    pub(super) fn as_seen_by_haproxy(&self) -> [(String, String); 3] {
        let variable = |name: &str, value: String| (format!("{}_{name}", self.name.to_uppercase()), value);
        [
            variable("ADDRESS", self.to_postgres.address().ip().to_string()),
            variable("POSTGRES_PORT", self.to_postgres.address().port().to_string()),
            variable("PATRONI_PORT", self.to_patroni.address().port().to_string()),
        ]
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

fn children(process: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|child| child.parse().ok()).collect()
}

fn send(signal: &str, process: u32) {
    let _ = Command::new("kill").args([signal, &process.to_string()]).output();
}
