//! PostgreSQL killed, cut off and frozen under two nodes: every response must still be correct.

use std::process::Command;
use std::thread;

use super::Setting;
use super::crew::Crew;
use super::fleet::{Fleet, becomes_ready};
use super::kill::called;
use super::liar::Lie;
use super::report::Report;
use crate::link::Link;
use crate::postgres::Cluster;
use crate::server::Server;
use crate::site::Site;

const CALLERS: usize = 6;
const NODES: usize = 2;

/// Two nodes, each with its own link to the database, and their callers.
struct Scene {
    fleet: Fleet,
    links: [Link; NODES],
    nodes: [Server; NODES],
    crew: Crew,
}

impl Scene {
    fn new(cluster: &Cluster, setting: &Setting, lie: Lie) -> Self {
        let url = cluster.fresh_schema();
        let fleet = Fleet::new(Site::on_database(&url));
        let links = [(); NODES].map(|()| Link::to(cluster.address()));
        let nodes = links.each_ref().map(|link| fleet.server().set("METERING_DATABASE", &link.through(&url)).start());
        fleet.targets.set(nodes.each_ref().map(Server::address));
        let called = called(&fleet.targets, setting.plant, lie);
        let crew = Crew::start(&called, fleet.accounts.clone(), CALLERS, |_| ());
        Self { fleet, links, nodes, crew }
    }

    /// Ends the faults, and compares.
    fn settle(self, setting: &mut Setting, report: &mut Report) {
        self.links.iter().for_each(Link::clear);
        for node in &self.nodes {
            if !becomes_ready(&node.client()) {
                report.loss("a node was not ready 30 s after the database recovered");
            }
        }
        thread::sleep(setting.rng.millis(300, 500));
        let told = self.crew.stop();
        drop(self.nodes);
        self.fleet.settle(&told, report);
    }
}

pub(super) fn kills(setting: &mut Setting, report: &mut Report) {
    let mut cluster = Cluster::start(&[]);
    let scene = Scene::new(&cluster, setting, Lie::Acknowledge);
    let mut killed = false;
    while setting.goes_on() || !killed {
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
    scene.settle(setting, report);
}

pub(super) fn commit_cuts(setting: &mut Setting, report: &mut Report) {
    let cluster = Cluster::start(&["fsync=off"]);
    let scene = Scene::new(&cluster, setting, Lie::Repeat);
    scene.links.iter().for_each(Link::cut_commits);
    while setting.goes_on() {
        thread::sleep(setting.rng.millis(200, 900));
        // Occasionally cut all connections of a node at once, whatever they are doing.
        setting.rng.pick(&scene.links).cut_all();
        report.add("times a node was cut off", 1);
    }
    let cuts = scene.links.iter().map(|link| u64::from(link.cuts())).sum();
    report.add("commits cut", cuts);
    scene.settle(setting, report);
}

pub(super) fn frozen_backends(setting: &mut Setting, report: &mut Report) {
    let cluster = Cluster::start(&["fsync=off"]);
    let scene = Scene::new(&cluster, setting, Lie::Acknowledge);
    let mut frozen_any = false;
    while setting.goes_on() || !frozen_any {
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
    scene.settle(setting, report);
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
