//! The leader of a cluster under Patroni is lost, again and again: each time another machine takes over in time, and
//! every response stays correct.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Setting;
use super::callers::{Callers, Event};
use super::faulty_proxy::Bug;
use super::fleet::{Fleet, becomes_ready, within};
use super::kill::targets_for;
use super::report::Report;
use crate::patroni::{PatroniCluster, loop_wait, ttl};
use crate::server::Server;
use crate::site::Site;

const NODES: usize = 3;

/// Callers of each of the two accounts, each with one connection: 64 in all.
const CALLERS: usize = 32;

/// The steps after Patroni's decision: the promotion, the checks of HAProxy, new connections of the nodes.
const SWITCH: Duration = Duration::from_secs(10);

/// How a leader is lost.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Killed,
    Paused,
    CutOff,
}

impl Loss {
    const ALL: [Self; 3] = [Self::Killed, Self::Paused, Self::CutOff];

    const fn name(self) -> &'static str {
        match self {
            Self::Killed => "killed",
            Self::Paused => "paused",
            Self::CutOff => "cut off",
        }
    }

    fn inflict(self, cluster: &mut PatroniCluster, machine: usize) {
        match self {
            Self::Killed => cluster.kill(machine),
            Self::Paused => cluster.pause(machine),
            Self::CutOff => cluster.cut_off(machine),
        }
    }

    fn end(self, cluster: &mut PatroniCluster, machine: usize) {
        match self {
            Self::Killed => cluster.start_again(machine),
            Self::Paused => cluster.resume(machine),
            Self::CutOff => cluster.reconnect(machine),
        }
    }
}

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let mut cluster = PatroniCluster::start();
    let fleet = Fleet::new(Site::on_database(cluster.url()));
    let nodes = [(); NODES].map(|()| fleet.server().start());
    fleet.targets.set(nodes.each_ref().map(Server::address));
    let targets = targets_for(&fleet.targets, setting.plant, Bug::Acknowledge);
    let gap = Arc::new(Gap::new());
    let watched = Arc::clone(&gap);
    let callers = Callers::start(&targets, fleet.accounts.clone(), CALLERS, move |_, event| {
        if event == Event::Charged {
            watched.end();
        }
    });
    let mut losses = Loss::ALL.iter().copied().cycle();
    while setting.has_time_left() || report.counter("leaders lost") == 0 {
        thread::sleep(setting.rng.millis(500, 2_000));
        let Some(loss) = losses.next() else { break };
        lose_leader(&mut cluster, loss, &gap, report);
    }
    for node in &nodes {
        if !becomes_ready(&node.client()) {
            report.loss("a node was not ready 30 s after the cluster was whole");
        }
    }
    thread::sleep(setting.rng.millis(300, 500));
    let counts = callers.stop();
    drop(nodes);
    fleet.compare_with_record(&counts, report);
}

/// Loses the leader, waits until charges are accepted again, and gives the lost machine back.
fn lose_leader(cluster: &mut PatroniCluster, loss: Loss, gap: &Gap, report: &mut Report) {
    cluster.wait_until_whole();
    let leader = cluster.leader().expect("a whole cluster has a leader");
    gap.start();
    loss.inflict(cluster, leader);
    report.add("leaders lost", 1);
    report.add(&format!("  {}", loss.name()), 1);
    // The key expires, a standby notices, and makes the other standby synchronous.
    let bound = ttl() + 2 * loop_wait() + SWITCH;
    let is_replaced = || cluster.leader().is_some_and(|new| new != leader);
    if !within(bound, is_replaced) {
        report.loss(format!("a leader that was {} had no successor after {bound:?}", loss.name()));
    }
    let replaced = Instant::now();
    // Charges that were confirmed before the key expired do not count.
    let accepted = || gap.last_end().is_some_and(|end| end > replaced);
    if !within(bound, accepted) {
        report
            .loss(format!("no charge was accepted for {bound:?} after a leader that was {} was replaced", loss.name()));
    }
    let longest = gap.longest();
    if longest > bound {
        report.loss(format!("no charge was accepted for {longest:?} after a leader was {}", loss.name()));
    }
    let milliseconds = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    report.maximum(&format!("  longest time without a charge, ms ({})", loss.name()), milliseconds);
    loss.end(cluster, leader);
    cluster.wait_until_whole();
}

/// The longest time without a confirmed charge.
#[derive(Debug)]
struct Gap {
    origin: Instant,
    /// When a charge was last confirmed, in microseconds.
    last: AtomicU64,
    longest: AtomicU64,
}

impl Gap {
    fn new() -> Self {
        Self { origin: Instant::now(), last: AtomicU64::new(0), longest: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// Starts over.
    fn start(&self) {
        self.last.store(self.now(), Ordering::SeqCst);
        self.longest.store(0, Ordering::SeqCst);
    }

    /// A charge was confirmed.
    fn end(&self) {
        let now = self.now();
        let before = self.last.swap(now, Ordering::SeqCst);
        self.longest.fetch_max(now.saturating_sub(before), Ordering::SeqCst);
    }

    fn last_end(&self) -> Option<Instant> {
        self.origin.checked_add(Duration::from_micros(self.last.load(Ordering::SeqCst)))
    }

    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_gap_is_measured_between_charges() {
        let gap = Gap::new();
        gap.start();
        gap.end();
        thread::sleep(Duration::from_millis(30));
        gap.end();
        gap.end();
        assert!(gap.longest() >= Duration::from_millis(30), "{gap:?}");
        assert!(gap.last_end().is_some_and(|end| end <= Instant::now()));
        gap.start();
        gap.end();
        assert!(gap.longest() < Duration::from_millis(30), "{gap:?}");
    }
}
