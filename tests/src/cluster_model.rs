//! A model of a cluster of groups of accounts: calculated in closed form, and simulated as a check.
//!
//! The cluster is a proposal (`docs/adr/0056-groups-of-accounts-over-citus.md`). Costs were measured by hand, the rest
//! is arithmetic. `docs/scaling.md` has the table and what follows from it.

mod arguments;
mod batch_cost;
mod closed_form;
mod resources;
mod simulation;
mod traffic;

use std::io::{self, Write};

pub use arguments::Arguments;

use crate::bench::format;
use crate::bench::table::{Row, Table};
use closed_form::Calculated;
use resources::Resources;
use simulation::Simulated;
use traffic::Traffic;

/// One change of the inputs: a row of the table.
struct Variant {
    name: &'static str,
    change: fn(&mut Arguments),
}

const VARIANTS: &[Variant] = &[
    Variant { name: "as given", change: |_| {} },
    Variant { name: "twice the charges", change: |inputs| inputs.charges_per_second *= 2 },
    Variant { name: "twice the charges and groups", change: twice_the_load },
    Variant { name: "twice the accounts", change: |inputs| inputs.accounts *= 2 },
    Variant { name: "hottest account twice as hot", change: twice_as_hot },
    Variant { name: "equally busy accounts", change: equally_busy },
    Variant { name: "half the groups", change: |inputs| inputs.groups = inputs.groups.div_ceil(2) },
    Variant { name: "twice the groups", change: |inputs| inputs.groups *= 2 },
    Variant { name: "four times the groups", change: |inputs| inputs.groups *= 4 },
    Variant { name: "twice the workers", change: |inputs| inputs.workers *= 2 },
    Variant { name: "half the cores", change: |inputs| inputs.cores = inputs.cores.div_ceil(2) },
    Variant { name: "twice the nodes", change: |inputs| inputs.nodes *= 2 },
    Variant { name: "twice the processor time", change: |inputs| inputs.batch_cost = inputs.batch_cost.doubled() },
    Variant { name: "twice the round trip", change: |inputs| inputs.round_trip_micros *= 2 },
    Variant { name: "twice the flush", change: |inputs| inputs.flush_micros *= 2 },
];

fn twice_the_load(inputs: &mut Arguments) {
    inputs.charges_per_second *= 2;
    inputs.groups *= 2;
}

#[expect(clippy::float_arithmetic, reason = "a share, not money")]
fn twice_as_hot(inputs: &mut Arguments) {
    inputs.hottest_share = (2.0 * inputs.hottest_share).min(1.0);
}

#[expect(clippy::float_arithmetic, reason = "a share, not money")]
fn equally_busy(inputs: &mut Arguments) {
    inputs.hottest_share = 1.0 / inputs.accounts as f64;
    inputs.zipf_exponent = 0.0;
}

/// Calculates and simulates each variant, and writes the table.
///
/// # Errors
/// If `out` cannot be written to.
pub fn run(arguments: &Arguments, out: &mut dyn Write) -> io::Result<()> {
    let mut table = Table::default();
    for variant in VARIANTS {
        let mut inputs = arguments.clone();
        (variant.change)(&mut inputs);
        table.row(row(variant.name, &inputs));
    }
    table.write("A cluster that is not built: calculated and simulated", out)
}

#[expect(clippy::float_arithmetic, reason = "figures for people")]
fn row(name: &str, inputs: &Arguments) -> Row {
    let traffic = Traffic::new(inputs);
    let (calculated, simulated) = (Calculated::new(inputs, &traffic), Simulated::run(inputs, &traffic));
    let resources = Resources::new(inputs, &traffic);
    let (workers, seconds) = (inputs.workers as f64, inputs.window_millis as f64 / 1e3);
    let cores = workers * inputs.cores as f64;
    let committed: u64 = simulated.committed_of_group.iter().sum();
    let arrived: u64 = simulated.arrived_of_group.iter().sum();
    let mut of_worker = vec![0_u64; inputs.workers];
    for (group, charges) in simulated.committed_of_group.iter().enumerate() {
        of_worker[inputs.worker_of(group)] += charges;
    }
    Row::default()
        .text("Inputs", name)
        .rate("Charges a second and worker, calculated", calculated.charges_per_second() / workers)
        .rate("simulated", committed as f64 / seconds / workers)
        .number("Committed, of arrivals", format::percent(Some(format::ratio(committed as f64, arrived as f64))))
        .number("Busiest worker, of the mean", format!("{:.2}", of_mean(&of_worker)))
        .number("Busiest group", format!("{:.1}", of_mean(&simulated.committed_of_group)))
        .number("Charges per commit, calculated", format!("{:.1}", calculated.batch()))
        .number("simulated", format!("{:.1}", format::ratio(committed as f64, simulated.batches as f64)))
        .count("Largest commit", simulated.largest_batch)
        .latency("Arrival to commit, p50", simulated.latency(50))
        .latency("p99", simulated.latency(99))
        .number("Cores busy, calculated", format::percent(Some(calculated.busy_cores() / cores)))
        .number("simulated", format::percent(Some(simulated.processor_micros as f64 / 1e6 / seconds / cores)))
        .number("Cores busy on the busiest node", format!("{:.1}", resources.cores_of_busiest_node))
        .count("Connections to a worker", resources.connections_to_a_worker)
        .count("without a balancer", resources.connections_without_balancer)
        .size("Memory of a worker", Some(resources.memory_of_a_worker))
        .size("Disk of a worker", Some(resources.disk_of_a_worker))
        .size("Log of a worker, a second", Some(resources.log_of_a_worker_per_second))
        .number("Move a group", humantime::format_duration(resources.move_a_group).to_string())
        .number("Add a worker", humantime::format_duration(resources.add_a_worker).to_string())
}

/// The largest, divided by the mean of all.
#[expect(clippy::float_arithmetic, reason = "a figure for people")]
fn of_mean(charges: &[u64]) -> f64 {
    let most = charges.iter().max().copied().unwrap_or_default();
    format::ratio(most as f64 * charges.len() as f64, charges.iter().sum::<u64>() as f64)
}

#[cfg(test)]
#[expect(clippy::float_arithmetic, reason = "rates, not money")]
mod tests {
    use clap::Parser;

    use super::*;

    /// Eight groups on one worker with eight cores, and 10,000 equally busy accounts.
    const SMALL: &str = "model --groups 8 --workers 1 --cores 8 --accounts 10000 --hottest-share 0 --zipf-exponent 0";

    fn small(more: &str) -> Arguments {
        Arguments::try_parse_from(SMALL.split(' ').chain(more.split(' '))).unwrap()
    }

    fn results(inputs: &Arguments) -> (Calculated, Simulated) {
        let traffic = Traffic::new(inputs);
        (Calculated::new(inputs, &traffic), Simulated::run(inputs, &traffic))
    }

    /// Closed form and simulation agree on rate, batch and processor time within 2 %.
    #[track_caller]
    fn assert_agree(inputs: &Arguments) {
        let (calculated, simulated) = results(inputs);
        let seconds = inputs.window_millis as f64 / 1e3;
        let committed = simulated.committed_of_group.iter().sum::<u64>() as f64;
        // what, calculated, simulated
        let table = [
            ("charges", calculated.charges_per_second(), committed / seconds),
            ("batch", calculated.batch(), committed / simulated.batches as f64),
            ("cores", calculated.busy_cores(), simulated.processor_micros as f64 / 1e6 / seconds),
        ];
        for (what, calculated, simulated) in table {
            assert!((simulated / calculated - 1.0).abs() < 0.02, "{what}: {calculated} and {simulated}");
        }
    }

    #[test]
    fn closed_form_and_simulation_agree_without_queueing() {
        let inputs = small("--charges-per-second 40 --window-millis 200000");
        assert_agree(&inputs);
        // Two round trips of 500 µs, 1,350 µs of a core, a flush of 218 µs, and no wait for anything else.
        let alone = std::time::Duration::from_micros(1_000 + 1_350 + 218);
        assert_eq!(results(&inputs).1.latency(50), Some(alone));
    }

    #[test]
    fn closed_form_and_simulation_agree_when_batches_grow() {
        assert_agree(&small("--charges-per-second 80000 --window-millis 2000"));
    }

    #[test]
    fn closed_form_and_simulation_agree_when_cores_are_saturated() {
        let inputs = Arguments { cores: 2, ..small("--charges-per-second 200000 --max-batch 100") };
        assert_agree(&inputs);
        let (calculated, simulated) = results(&inputs);
        assert!((calculated.busy_cores() - 2.0).abs() < 0.01, "{}", calculated.busy_cores());
        assert_eq!(simulated.largest_batch, 100);
        assert!(calculated.charges_per_second() < 50_000.0, "{}", calculated.charges_per_second());
    }

    #[test]
    fn hot_account_limits_exactly_its_group() {
        let inputs = Arguments { hottest_share: 0.8, ..small("--charges-per-second 300000 --max-batch 500") };
        let traffic = Traffic::new(&inputs);
        let (calculated, simulated) = results(&inputs);
        let hot = traffic.group_of(1);
        for (group, arriving) in traffic.by_group().iter().enumerate() {
            let offered = arriving.charges_per_micro() * 1e6;
            let (arrived, committed) = (simulated.arrived_of_group[group], simulated.committed_of_group[group]);
            if group == hot {
                assert!(calculated.charges_per_second_of(group) < 0.8 * offered, "{offered}");
                assert!(committed < arrived * 8 / 10, "{committed} of {arrived}");
            } else {
                assert!((calculated.charges_per_second_of(group) / offered - 1.0).abs() < 1e-3, "group {group}");
                assert!(committed > arrived * 98 / 100, "group {group}: {committed} of {arrived}");
            }
        }
        assert!(calculated.busy_cores() < 8.0, "{}", calculated.busy_cores());
    }

    #[test]
    fn every_run_writes_the_same_table() {
        let inputs = small("--charges-per-second 20000 --window-millis 100 --warm-up-millis 100");
        let table = || {
            let mut out = Vec::new();
            run(&inputs, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (first, second) = (table(), table());
        assert_eq!(first, second);
        // A title, the headings and their line, and the variants.
        assert_eq!(first.lines().filter(|line| line.starts_with('|')).count(), 2 + VARIANTS.len(), "{first}");
        let other = Arguments { seed: 1, ..inputs.clone() };
        assert_ne!(results(&inputs).1, results(&other).1);
    }
}
