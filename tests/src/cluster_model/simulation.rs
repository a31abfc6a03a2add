//! Simulates the cluster event by event.
//!
//! Times are whole microseconds since the start and the arrivals come from a seed, so every run is the same. A commit
//! keeps its core until it has used its processor time. Cores are given in the order of requests.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

use super::arguments::Arguments;
use super::traffic::Traffic;
use crate::bench::random::SplitMix64;

/// What happened after the warm-up.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Simulated {
    /// From a charge's arrival until it is committed; sorted.
    latencies_micros: Vec<u64>,
    pub(super) batches: u64,
    pub(super) largest_batch: usize,
    pub(super) arrived_of_group: Vec<u64>,
    pub(super) committed_of_group: Vec<u64>,
    pub(super) processor_micros: u64,
}

impl Simulated {
    pub(super) fn run(arguments: &Arguments, traffic: &Traffic) -> Self {
        let mut cluster = Cluster::new(arguments);
        let mut draws = SplitMix64::new(arguments.seed);
        let mut nanos = 0;
        loop {
            nanos += traffic.gap_nanos(draws.fraction());
            let now = nanos / 1_000;
            cluster.advance(now);
            if now >= cluster.counted.end {
                break;
            }
            let account = traffic.rank_at(draws.fraction());
            cluster.arrive(now, traffic.group_of(account), account);
        }
        cluster.result.latencies_micros.sort_unstable();
        cluster.result
    }

    /// Within which this percentage of the charges was committed.
    pub(super) fn latency(&self, percent: usize) -> Option<Duration> {
        let last = self.latencies_micros.len().checked_sub(1)?;
        Some(Duration::from_micros(self.latencies_micros[last * percent / 100]))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A group's batch has reached its worker.
    Reached(usize),
    /// Its processor time is used.
    Processed(usize),
    /// It is on disk.
    Committed(usize),
}

/// A group. A commit is in progress while its batch has charges.
#[derive(Debug, Default)]
struct Group {
    waiting: VecDeque<Waiting>,
    arrivals_of_batch: Vec<u64>,
    processor_micros: u64,
}

#[derive(Debug)]
struct Waiting {
    since: u64,
    account: u64,
}

#[derive(Debug)]
struct Worker {
    free_cores: usize,
    waiting_groups: VecDeque<usize>,
}

#[derive(Debug)]
struct Cluster<'a> {
    arguments: &'a Arguments,
    counted: Range<u64>,
    groups: Vec<Group>,
    workers: Vec<Worker>,
    /// By time, then in the order in which they were scheduled.
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    accounts_of_batch: HashSet<u64>,
    result: Simulated,
}

impl<'a> Cluster<'a> {
    fn new(arguments: &'a Arguments) -> Self {
        let begin = arguments.warm_up_millis * 1_000;
        let idle = || Worker { free_cores: arguments.cores, waiting_groups: VecDeque::new() };
        let none = || vec![0; arguments.groups];
        Self {
            arguments,
            counted: begin..begin + arguments.window_millis * 1_000,
            groups: (0..arguments.groups).map(|_| Group::default()).collect(),
            workers: (0..arguments.workers).map(|_| idle()).collect(),
            events: BinaryHeap::new(),
            scheduled: 0,
            accounts_of_batch: HashSet::new(),
            result: Simulated { arrived_of_group: none(), committed_of_group: none(), ..Simulated::default() },
        }
    }

    fn schedule(&mut self, time: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((time, self.scheduled, event)));
    }

    /// Handles everything that happens until then.
    fn advance(&mut self, until: u64) {
        while let Some(&Reverse((time, _, event))) = self.events.peek() {
            if time > until {
                break;
            }
            self.events.pop();
            match event {
                Event::Reached(group) => self.reached(time, group),
                Event::Processed(group) => self.processed(time, group),
                Event::Committed(group) => self.committed(time, group),
            }
        }
    }

    fn arrive(&mut self, now: u64, group: usize, account: u64) {
        if self.counted.contains(&now) {
            self.result.arrived_of_group[group] += 1;
        }
        self.groups[group].waiting.push_back(Waiting { since: now, account });
        if self.groups[group].arrivals_of_batch.is_empty() {
            self.begin(now, group);
        }
    }

    /// Sends what waits, which is at least one charge.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 0; casts saturate")]
    fn begin(&mut self, now: u64, index: usize) {
        let group = &mut self.groups[index];
        let count = group.waiting.len().min(self.arguments.max_batch);
        self.accounts_of_batch.clear();
        for charge in group.waiting.drain(..count) {
            group.arrivals_of_batch.push(charge.since);
            self.accounts_of_batch.insert(charge.account);
        }
        let accounts = self.accounts_of_batch.len();
        group.processor_micros = self.arguments.commit_micros(accounts as f64, count as f64).round() as u64;
        self.schedule(now + self.arguments.network_micros(), Event::Reached(index));
    }

    fn reached(&mut self, now: u64, group: usize) {
        let worker = &mut self.workers[self.arguments.worker_of(group)];
        if worker.free_cores == 0 {
            worker.waiting_groups.push_back(group);
        } else {
            worker.free_cores -= 1;
            self.process(now, group);
        }
    }

    fn process(&mut self, now: u64, group: usize) {
        self.schedule(now + self.groups[group].processor_micros, Event::Processed(group));
    }

    fn processed(&mut self, now: u64, group: usize) {
        if self.counted.contains(&now) {
            self.result.processor_micros += self.groups[group].processor_micros;
        }
        self.schedule(now + self.arguments.flush_micros, Event::Committed(group));
        let worker = &mut self.workers[self.arguments.worker_of(group)];
        match worker.waiting_groups.pop_front() {
            Some(next) => self.process(now, next),
            None => worker.free_cores += 1,
        }
    }

    fn committed(&mut self, now: u64, index: usize) {
        let group = &mut self.groups[index];
        let count = group.arrivals_of_batch.len();
        if self.counted.contains(&now) {
            self.result.batches += 1;
            self.result.largest_batch = self.result.largest_batch.max(count);
            self.result.committed_of_group[index] += count as u64;
            self.result.latencies_micros.extend(group.arrivals_of_batch.iter().map(|since| now - since));
        }
        group.arrivals_of_batch.clear();
        if !group.waiting.is_empty() {
            self.begin(now, index);
        }
    }
}
