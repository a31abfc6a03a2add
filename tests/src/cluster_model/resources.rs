//! What the cluster needs besides processor time on its workers.
#![expect(clippy::float_arithmetic, reason = "sizes of a model, not money")]

use std::time::Duration;

use super::arguments::Arguments;
use super::traffic::Traffic;

/// A page of PostgreSQL: an account's row is read into memory with the page that it is on.
const PAGE_BYTES: f64 = 8_192.0;

/// The share of charges whose rows should be in memory.
const IN_MEMORY: f64 = 0.9;

/// A connection without plans (an estimate), and a kept plan (measured: ADR 56).
const CONNECTION_BYTES: usize = 5_000_000;
const PLAN_BYTES: usize = 45_000;

/// Statements of the charge path, whose plans a connection keeps for each group (an estimate).
const STATEMENTS: usize = 10;

/// A move of a nearly empty group (measured: ADR 56, 3 to 9).
const MOVE_SECONDS: f64 = 9.0;

/// Preparing a new worker, for each group (measured: ADR 56, 20 for 20 schemas).
const SCHEMA_SECONDS: f64 = 1.0;

#[derive(Debug)]
pub(super) struct Resources {
    /// Of the node that has the group of the hottest account.
    pub(super) cores_of_busiest_node: f64,
    /// If a balancer sends each group to one node.
    pub(super) connections_to_a_worker: usize,
    /// If every node gets charges of every group.
    pub(super) connections_without_balancer: usize,
    /// Rows of the accounts that make most charges, each on a page of its own, and connections without a balancer.
    pub(super) memory_of_a_worker: u64,
    pub(super) disk_of_a_worker: u64,
    pub(super) log_of_a_worker_per_second: u64,
    pub(super) move_a_group: Duration,
    /// Moving its part of the groups to it, one after the other.
    pub(super) add_a_worker: Duration,
}

impl Resources {
    pub(super) fn new(arguments: &Arguments, traffic: &Traffic) -> Self {
        let (groups, workers) = (arguments.groups as f64, arguments.workers as f64);
        let (charges, nodes) = (arguments.charges_per_second as f64, arguments.nodes as f64);
        let own_groups = arguments.groups_of_a_worker();
        let connections = own_groups * arguments.nodes;
        let of_connections = connections * (CONNECTION_BYTES + own_groups * STATEMENTS * PLAN_BYTES);
        let hottest = arguments.hottest_share;
        let disk = arguments.accounts as f64 * arguments.account_bytes as f64;
        let copying = disk / groups / arguments.copy_bytes_per_second as f64;
        let move_seconds = copying + MOVE_SECONDS;
        let moves = (groups / (workers + 1.0)).ceil();
        Self {
            cores_of_busiest_node: charges * (hottest + (1.0 - hottest) / nodes) * arguments.node_micros as f64 / 1e6,
            connections_to_a_worker: own_groups,
            connections_without_balancer: connections,
            memory_of_a_worker: bytes(traffic.rank_at(IN_MEMORY) as f64 * PAGE_BYTES / workers + of_connections as f64),
            disk_of_a_worker: bytes(disk / workers),
            log_of_a_worker_per_second: bytes(charges * arguments.log_bytes as f64 / workers),
            move_a_group: seconds(move_seconds),
            add_a_worker: seconds(groups * SCHEMA_SECONDS + moves * move_seconds),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 0; casts saturate")]
fn bytes(bytes: f64) -> u64 {
    bytes.round() as u64
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.round()).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn sizes_are_divided_over_workers_groups_and_nodes() {
        let line = "model --charges-per-second 1000000 --accounts 100000000 --groups 100 --workers 9 --nodes 10 \
                    --account-bytes 40000 --log-bytes 360 --node-micros 40 --copy-bytes-per-second 100000000 \
                    --hottest-share 1";
        let arguments = Arguments::try_parse_from(line.split_whitespace()).unwrap();
        let resources = Resources::new(&arguments, &Traffic::new(&arguments));
        assert_eq!(resources.cores_of_busiest_node, 40.0);
        assert_eq!((resources.connections_to_a_worker, resources.connections_without_balancer), (12, 120));
        // One account's page over nine workers, and 120 connections with ten plans for each of 12 groups.
        assert_eq!(resources.memory_of_a_worker, 910 + 120 * (5_000_000 + 12 * 10 * 45_000));
        assert_eq!(resources.disk_of_a_worker, 444_444_444_444);
        assert_eq!(resources.log_of_a_worker_per_second, 40_000_000);
        assert_eq!(resources.move_a_group, Duration::from_secs(400 + 9));
        assert_eq!(resources.add_a_worker, Duration::from_secs(100 + 10 * 409));
    }
}
