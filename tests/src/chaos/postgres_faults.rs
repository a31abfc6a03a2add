//! PostgreSQL killed, cut off and frozen under two nodes: every response must still be correct.

use std::process::Command;
use std::thread;

use super::Setting;
use super::callers::Callers;
use super::faulty_proxy::Bug;
use super::fleet::{Fleet, becomes_ready};
use super::kill::targets_for;
use super::report::Report;
use crate::database_proxy::DatabaseProxy;
use crate::postgres::Cluster;
use crate::server::Server;
use crate::site::Site;

const CALLERS: usize = 6;
const NODES: usize = 2;

/// Two nodes, each with its own proxy to the database, and their callers.
struct Deployment {
    fleet: Fleet,
    proxies: [DatabaseProxy; NODES],
    nodes: [Server; NODES],
    callers: Callers,
}

impl Deployment {
    fn new(cluster: &Cluster, setting: &Setting, bug: Bug) -> Self {
        let url = cluster.fresh_schema();
        let fleet = Fleet::new(Site::on_database(&url));
        let proxies = [(); NODES].map(|()| DatabaseProxy::to(cluster.address()));
        let nodes =
            proxies.each_ref().map(|proxy| fleet.server().set("METERING_DATABASE", &proxy.through(&url)).start());
        fleet.targets.set(nodes.each_ref().map(Server::address));
        let targets_for = targets_for(&fleet.targets, setting.plant, bug);
        let callers = Callers::start(&targets_for, fleet.accounts.clone(), CALLERS, |_, _| ());
        Self { fleet, proxies, nodes, callers }
    }

    /// Ends the faults, and compares.
    fn end_and_compare(self, setting: &mut Setting, report: &mut Report) {
        self.proxies.iter().for_each(DatabaseProxy::clear);
        for node in &self.nodes {
            if !becomes_ready(&node.client()) {
                report.loss("a node was not ready 30 s after the database recovered");
            }
        }
        thread::sleep(setting.rng.millis(300, 500));
        let counts = self.callers.stop();
        drop(self.nodes);
        self.fleet.compare_with_record(&counts, report);
    }
}

pub(super) fn kills(setting: &mut Setting, report: &mut Report) {
    let mut cluster = Cluster::start(&[]);
    let deployment = Deployment::new(&cluster, setting, Bug::Acknowledge);
    let mut killed = false;
    while setting.has_time_left() || !killed {
        thread::sleep(setting.rng.millis(200, 900));
        if setting.rng.one_in(2) || !killed {
            cluster.crash();
            killed = true;
            report.add("kills of PostgreSQL", 1);
        } else {
            cluster.end_connections();
            report.add("times all connections were ended", 1);
        }
    }
    deployment.end_and_compare(setting, report);
}

pub(super) fn commit_cuts(setting: &mut Setting, report: &mut Report) {
    let cluster = Cluster::start(&["fsync=off"]);
    let deployment = Deployment::new(&cluster, setting, Bug::Repeat);
    deployment.proxies.iter().for_each(DatabaseProxy::cut_commits);
    while setting.has_time_left() {
        thread::sleep(setting.rng.millis(200, 900));
        // Occasionally cut all connections of a node at once, even busy ones.
        setting.rng.pick(&deployment.proxies).cut_all();
        report.add("times a node was cut off", 1);
    }
    let cuts = deployment.proxies.iter().map(|proxy| u64::from(proxy.cuts())).sum();
    report.add("commits cut", cuts);
    deployment.end_and_compare(setting, report);
}

pub(super) fn frozen_backends(setting: &mut Setting, report: &mut Report) {
    let cluster = Cluster::start(&["fsync=off"]);
    let deployment = Deployment::new(&cluster, setting, Bug::Acknowledge);
    let mut frozen_any = false;
    while setting.has_time_left() || !frozen_any {
        thread::sleep(setting.rng.millis(200, 600));
        let all = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let mut backends: Vec<String> = cluster.run(all).lines().map(str::to_owned).collect();
        if setting.rng.one_in(2) {
            setting.rng.shuffle(&mut backends);
            backends.truncate(backends.len().div_ceil(2));
        }
        report.add("backends frozen", u64::try_from(backends.len()).unwrap_or(u64::MAX));
        let frozen = Frozen::stop(backends);
        thread::sleep(setting.rng.millis(300, 2_500));
        drop(frozen);
        frozen_any = true;
    }
    deployment.end_and_compare(setting, report);
}

/// Processes that are stopped until this is dropped.
struct Frozen(Vec<String>);

impl Frozen {
    fn stop(processes: Vec<String>) -> Self {
        signal("-STOP", &processes);
        Self(processes)
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        signal("-CONT", &self.0);
    }
}

/// One by one, because some may have ended meanwhile.
fn signal(name: &str, processes: &[String]) {
    for process in processes {
        let _ = Command::new("kill").args([name, process]).output();
    }
}
