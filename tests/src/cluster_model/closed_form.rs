//! The cluster in closed form: for each group the batch that is as large as what arrives while it is committed.
//!
//! A commit waits for a core only where the groups of a worker would use more cores than it has. Waits that are due to
//! chance alone are left out; the simulation has them.
#![expect(clippy::float_arithmetic, reason = "times of a model, not money")]

use super::arguments::Arguments;
use super::traffic::{GroupTraffic, Traffic};

/// All groups, by number.
#[derive(Debug)]
pub(super) struct Calculated {
    groups: Vec<Cycle>,
}

/// A commit of a group, and the time until the next one begins.
#[derive(Debug, Clone, Copy)]
struct Cycle {
    charges: f64,
    micros: f64,
    /// Of one core.
    processor_micros: f64,
}

impl Calculated {
    pub(super) fn new(arguments: &Arguments, traffic: &Traffic) -> Self {
        let traffic = traffic.by_group();
        let mut groups: Vec<Cycle> = traffic.iter().map(|group| Cycle::new(arguments, group, 0.0)).collect();
        let cores = arguments.cores as f64;
        for worker in 0..arguments.workers {
            let own: Vec<usize> = (0..groups.len()).filter(|group| arguments.worker_of(*group) == worker).collect();
            if own.iter().map(|group| groups[*group].cores()).sum::<f64>() <= cores {
                continue;
            }
            let cycle = |group: &usize, wait| Cycle::new(arguments, &traffic[*group], wait);
            let is_too_short = |wait| own.iter().map(|group| cycle(group, wait).cores()).sum::<f64>() > cores;
            let (mut least, mut most) = (0.0, 1_000.0);
            while is_too_short(most) {
                most *= 2.0;
            }
            for _ in 0..30 {
                let wait = f64::midpoint(least, most);
                if is_too_short(wait) { least = wait } else { most = wait }
            }
            for group in &own {
                groups[*group] = cycle(group, most);
            }
        }
        Self { groups }
    }

    pub(super) fn charges_per_second(&self) -> f64 {
        (0..self.groups.len()).map(|group| self.charges_per_second_of(group)).sum()
    }

    pub(super) fn charges_per_second_of(&self, group: usize) -> f64 {
        self.groups[group].charges / self.groups[group].micros * 1e6
    }

    /// The mean over all commits.
    pub(super) fn batch(&self) -> f64 {
        self.charges_per_second() / self.groups.iter().map(|cycle| 1e6 / cycle.micros).sum::<f64>()
    }

    pub(super) fn busy_cores(&self) -> f64 {
        self.groups.iter().map(Cycle::cores).sum()
    }
}

impl Cycle {
    /// Of a group whose commits wait this long for a core.
    fn new(arguments: &Arguments, traffic: &GroupTraffic, wait_micros: f64) -> Self {
        let others = (arguments.network_micros() + arguments.flush_micros) as f64 + wait_micros;
        let mut commit = others + arguments.commit_micros(1.0, 1.0);
        loop {
            let cycle = Self::after(arguments, traffic, commit);
            let next = others + cycle.processor_micros;
            // The batches grow with each step, to the largest one at most.
            if (next - commit).abs() < 0.01 {
                return cycle;
            }
            commit = next;
        }
    }

    /// The commit of what arrives during one that takes this long. If nothing arrives, it waits for a charge.
    fn after(arguments: &Arguments, traffic: &GroupTraffic, commit_micros: f64) -> Self {
        let rate = traffic.charges_per_micro();
        let window = commit_micros.min(arguments.max_batch as f64 / rate);
        let nothing = (-rate * commit_micros).exp();
        let charges = rate * window + nothing;
        let accounts = traffic.accounts_in(window) + nothing;
        let micros = commit_micros + nothing / rate;
        Self { charges, micros, processor_micros: arguments.commit_micros(accounts, charges) }
    }

    fn cores(&self) -> f64 {
        self.processor_micros / self.micros
    }
}
