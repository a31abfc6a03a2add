//! Three PostgreSQL under Patroni, with etcd and HAProxy (Debian's packages), configured by the files in
//! `deploy/patroni`.
//!
//! Each PostgreSQL and its Patroni simulate a machine: others reach them through proxies, and they reach etcd through
//! proxies, so that a machine can be cut off.

mod machine;
mod processes;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use self::machine::{Machine, PASSWORD, deployed};
use self::processes::Processes;
use crate::client::Client;
use crate::ports::free_address;
use crate::postgres::{ServerUser, folder, program};

/// How long a cluster may take to have a leader and a synchronous standby, and a lost machine to come back.
const WAIT: Duration = Duration::from_secs(120);

/// Set by `./test.sh` where Patroni, etcd or HAProxy is not installed.
const SKIP: &str = "TESTS_SKIP_PATRONI";

/// Whether tests with Patroni are disabled.
#[must_use]
#[track_caller]
pub fn is_skipped() -> bool {
    crate::postgres::is_skipped() || crate::skipped::by(SKIP)
}

/// The seconds that a lost leader's key stays, from the configuration.
#[must_use]
pub fn ttl() -> Duration {
    setting("ttl")
}

/// The seconds between two looks of Patroni at the cluster, from the configuration.
#[must_use]
pub fn loop_wait() -> Duration {
    setting("loop_wait")
}

fn setting(name: &str) -> Duration {
    let text = fs::read_to_string(deployed("config.yml")).expect("the configuration can be read");
    let line = text.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(": "));
    Duration::from_secs(line.and_then(|seconds| seconds.parse().ok()).expect("the configuration has the setting"))
}

/// A running cluster. Dropping it ends it.
#[derive(Debug)]
pub struct PatroniCluster {
    machines: [Machine; 3],
    port: u16,
    processes: Processes,
    _folder: TempDir,
}

impl PatroniCluster {
    /// Starts one, and returns once it has a leader with a synchronous standby.
    #[must_use]
    #[track_caller]
    pub fn start() -> Self {
        let (folder, user) = (folder(), ServerUser::find());
        chown(folder.path(), Some(user.id), Some(user.group)).expect("the folder's owner can be changed");
        let mut processes = Processes::new(folder.path());
        let etcd = start_etcd(folder.path(), &user, &mut processes);
        let mut machines = [1, 2, 3].map(|number| Machine::new(number, folder.path(), &etcd));
        for machine in &mut machines {
            machine.start(&mut processes);
        }
        let port = free_address().port();
        let mut haproxy = Command::new("/usr/sbin/haproxy");
        haproxy.arg("-f").arg(deployed("haproxy.cfg")).env("BIND", format!("127.0.0.1:{port}"));
        for machine in &machines {
            haproxy.envs(machine.as_seen_by_haproxy());
        }
        processes.start(haproxy, &folder.path().join("haproxy.log"));
        let cluster = Self { machines, port, processes, _folder: folder };
        cluster.wait_until_whole();
        let _ = cluster.run("postgres", "CREATE ROLE metering LOGIN PASSWORD 'metering'");
        let _ = cluster.run("postgres", "CREATE DATABASE metering OWNER metering ENCODING UTF8 TEMPLATE template0");
        cluster
    }

    /// The URL of the database `metering`, through HAProxy.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://metering:metering@127.0.0.1:{}/metering?sslmode=disable", self.port)
    }

    /// The leader, as the connected machines report it; `None` while there is none.
    #[must_use]
    pub fn leader(&self) -> Option<usize> {
        self.machines.iter().position(|machine| machine.answers("/primary"))
    }

    /// Whether there is a leader, and both standbys follow it, one of them synchronously. The state in `/cluster` is
    /// not enough: a machine that has come back is "running" there before it is rewound.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let Some(leader) = self.leader() else { return false };
        let Some(status) = self.machines[leader].get("/patroni") else { return false };
        let standbys = status["replication"].as_array().map_or(&[][..], Vec::as_slice);
        let is_synchronous = |standby: &&Value| standby["sync_state"] == "sync";
        standbys.len() == 2
            && standbys.iter().all(|standby| standby["state"] == "streaming")
            && standbys.iter().filter(is_synchronous).count() == 1
    }

    /// Waits until [`PatroniCluster::is_whole`].
    #[track_caller]
    pub fn wait_until_whole(&self) {
        let until = Instant::now() + WAIT;
        while !self.is_whole() {
            let seen = || self.machines.each_ref().map(|machine| machine.get("/cluster"));
            assert!(Instant::now() < until, "the cluster is not whole after {WAIT:?}: {:?}", seen());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Ends all processes of a machine immediately, as a power loss would.
    pub fn kill(&mut self, machine: usize) {
        self.machines[machine].kill(&mut self.processes);
    }

    /// Starts a killed machine again.
    pub fn start_again(&mut self, machine: usize) {
        self.machines[machine].start(&mut self.processes);
    }

    /// Stops all processes of a machine without ending them, as a hypervisor does with a machine that it moves.
    pub fn pause(&mut self, machine: usize) {
        self.machines[machine].pause();
    }

    /// Lets a paused machine continue.
    pub fn resume(&mut self, machine: usize) {
        self.machines[machine].resume();
    }

    /// Cuts a machine off from the others, from etcd and from HAProxy. Nothing arrives, and nothing is refused.
    pub fn cut_off(&mut self, machine: usize) {
        self.machines[machine].cut_off();
    }

    /// Connects a machine again that was cut off.
    pub fn reconnect(&mut self, machine: usize) {
        self.machines[machine].reconnect();
    }

    /// Runs SQL on the leader, as the superuser.
    #[track_caller]
    pub fn run(&self, database: &str, sql: &str) -> String {
        let mut command = Command::new(program("psql"));
        command.args(["-X", "-q", "-A", "-t", "-h", "127.0.0.1", "-U", "postgres", "-c", sql, database]);
        let result = command.env("PGPORT", self.port.to_string()).env("PGPASSWORD", PASSWORD).output();
        let result = result.expect("psql can be run");
        assert!(result.status.success(), "{sql}: {}", String::from_utf8_lossy(&result.stderr));
        String::from_utf8_lossy(&result.stdout).trim().to_owned()
    }
}

/// Starts three members of etcd, and returns where they listen for clients.
#[track_caller]
fn start_etcd(folder: &Path, user: &ServerUser, processes: &mut Processes) -> [SocketAddr; 3] {
    let clients = [(); 3].map(|()| free_address());
    let peers = [(); 3].map(|()| free_address());
    let names = ["db1", "db2", "db3"];
    let all: Vec<_> = names.iter().zip(peers).map(|(name, peer)| format!("{name}=http://{peer}")).collect();
    for ((name, client), peer) in names.iter().zip(clients).zip(peers) {
        let mut etcd = user.command(Path::new("/usr/bin/etcd"));
        etcd.env("ETCD_NAME", name)
            .env("ETCD_DATA_DIR", folder.join(format!("etcd-{name}")))
            .env("ETCD_LISTEN_CLIENT_URLS", format!("http://{client}"))
            .env("ETCD_ADVERTISE_CLIENT_URLS", format!("http://{client}"))
            .env("ETCD_LISTEN_PEER_URLS", format!("http://{peer}"))
            .env("ETCD_INITIAL_ADVERTISE_PEER_URLS", format!("http://{peer}"))
            .env("ETCD_INITIAL_CLUSTER", all.join(","))
            .env("ETCD_INITIAL_CLUSTER_STATE", "new")
            .env("ETCD_ENABLE_V2", "true");
        processes.start(etcd, &folder.join(format!("etcd-{name}.log")));
    }
    let until = Instant::now() + WAIT;
    for client in clients {
        let healthy = || Client::new(client).try_send("GET", "/health", None).is_ok_and(|health| health.status == 200);
        while !healthy() {
            assert!(Instant::now() < until, "etcd does not respond");
            thread::sleep(Duration::from_millis(100));
        }
    }
    clients
}
