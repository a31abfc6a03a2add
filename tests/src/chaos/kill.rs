//! `kill -9` under load: after a restart every confirmed charge is on record, and nothing twice.

use std::thread;

use super::Setting;
use super::callers::{Callers, Kind};
use super::faulty_proxy::{self, Bug};
use super::fleet::{Fleet, verify};
use super::report::Report;
use super::rng::Rng;
use super::targets::Targets;
use crate::server::Server;
use crate::site::Site;

const CALLERS: usize = 6;

pub(super) fn one_server(setting: &mut Setting, report: &mut Report) {
    run::<1>(setting, report, Bug::Acknowledge);
}

pub(super) fn two_servers(setting: &mut Setting, report: &mut Report) {
    run::<2>(setting, report, Bug::Repeat);
}

fn run<const N: usize>(setting: &mut Setting, report: &mut Report, bug: Bug) {
    let fleet = Fleet::new(Site::new());
    let mut servers = [(); N].map(|()| Some(fleet.server().start()));
    announce(&fleet, &servers);
    let callers =
        Callers::start(&targets_for(&fleet.targets, setting.plant, bug), fleet.accounts.clone(), CALLERS, |_, _| ());
    while setting.has_time_left() {
        thread::sleep(setting.rng.millis(50, 700));
        let victim = victim(&mut setting.rng, &mut servers);
        if let Some(server) = victim.take() {
            server.kill();
            report.add("kills", 1);
        }
        if setting.rng.one_in(4) {
            verify(&fleet.site, report);
        }
        let server = fleet.server().start();
        fleet.audit(&server, report);
        *victim = Some(server);
        announce(&fleet, &servers);
    }
    // Some load after the last kill, even in a short campaign.
    thread::sleep(setting.rng.millis(300, 500));
    let counts = callers.stop();
    servers.into_iter().flatten().for_each(Server::kill);
    fleet.compare_with_record(&counts, report);
    assert!(counts.iter().all(|count| count.charged > 0), "there was no load: {counts:?} {:?}", Kind::Plain);
}

fn victim<'a>(rng: &mut Rng, servers: &'a mut [Option<Server>]) -> &'a mut Option<Server> {
    let index = rng.index(servers.len());
    &mut servers[index]
}

fn announce(fleet: &Fleet, servers: &[Option<Server>]) {
    fleet.targets.set(servers.iter().flatten().map(Server::address));
}

/// The addresses to call: the servers, or with a planted bug the proxy in front of them.
pub(super) fn targets_for(servers: &Targets, plant: bool, bug: Bug) -> Targets {
    if !plant {
        return servers.clone();
    }
    let targets = Targets::default();
    targets.set([faulty_proxy::start(servers, bug)]);
    targets
}
