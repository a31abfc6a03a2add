//! A real Redis (Debian's package) that flushes each write, and its own load generator.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::bench::Failure;
use crate::bench::sample::Sample;
use crate::bench::tools::RedisPrograms;
use crate::daemon::{Daemon, folder};
use crate::ports::free_address;
use crate::process::reaped_time;

/// Commands to estimate the rate with: this many, and as many for each connection.
const PROBE: usize = 100;

/// A running Redis, which ends on drop.
#[derive(Debug)]
pub(super) struct Redis {
    benchmark: PathBuf,
    address: SocketAddr,
    _daemon: Daemon,
}

impl Redis {
    pub(super) fn start(programs: &RedisPrograms, data_dir: &Path) -> Result<Self, Failure> {
        let (folder, address) = (folder("redis", data_dir)?, free_address());
        let (port, host) = (address.port().to_string(), address.ip().to_string());
        let data = folder.path().to_string_lossy().into_owned();
        let args = ["--port", &port, "--bind", &host, "--dir", &data, "--save", ""];
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        let daemon = Daemon::start(&programs.server, args.into_iter().chain(durable), folder, &[address])?;
        Ok(Self { benchmark: programs.benchmark.clone(), address, _daemon: daemon })
    }

    /// Subtracts from `keys` balances over `connections` connections, for about `time`.
    pub(super) fn measure(&self, keys: usize, connections: usize, time: Duration) -> Result<Sample, Failure> {
        // redis-benchmark stops after a number of commands, not after a time.
        let probe = self.send(PROBE + PROBE * connections, keys, connections)?;
        self.send(commands_in(time, &probe).max(connections), keys, connections)
    }

    fn send(&self, commands: usize, keys: usize, connections: usize) -> Result<Sample, Failure> {
        let mut command = Command::new(&self.benchmark);
        command.args(["-h", &self.address.ip().to_string(), "-p", &self.address.port().to_string(), "--csv"]);
        command.args(["-c", &connections.to_string(), "-n", &commands.to_string(), "-r", &keys.to_string()]);
        // Replaced by a number below `keys`, of always twelve digits.
        command.args(["DECRBY", "account:__rand_int__", "1"]).stdin(Stdio::null());
        let busy_before = reaped_time();
        let output = command.output()?;
        let busy = reaped_time().zip(busy_before).map(|(after, before)| after.saturating_sub(before));
        let text = String::from_utf8_lossy(&output.stdout);
        // It ends with an error when Redis does not accept a command.
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("redis-benchmark ended with {}: {text}{errors}", output.status).into());
        }
        parse(&text, commands, busy)
    }
}

/// How many commands take about `time`.
#[expect(
    clippy::float_arithmetic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an estimate above zero; casts saturate"
)]
fn commands_in(time: Duration, probe: &Sample) -> usize {
    (probe.rate() * time.as_secs_f64()) as usize
}

/// Parses the two lines of its CSV: names, and values.
#[expect(clippy::float_arithmetic, reason = "figures for people")]
fn parse(output: &str, commands: usize, busy: Option<Duration>) -> Result<Sample, Failure> {
    let mut lines = output.lines().filter(|line| line.starts_with('"'));
    let mut cells =
        || lines.next().unwrap_or_default().split(',').map(|cell| cell.trim_matches('"')).collect::<Vec<_>>();
    let (names, values) = (cells(), cells());
    let value = |name: &str| {
        let column = names.iter().position(|found| *found == name);
        let value = column.and_then(|column| values.get(column)?.parse::<f64>().ok()).filter(|value| *value > 0.0);
        value.ok_or_else(|| format!("redis-benchmark printed no {name}: {output}"))
    };
    let seconds = commands as f64 / value("rps")?;
    let millis = |name: &str| Ok::<_, Failure>(Some(Duration::from_secs_f64(value(name)? / 1e3)));
    Ok(Sample {
        responses: u64::try_from(commands)?,
        elapsed: Duration::from_secs_f64(seconds),
        p50: millis("p50_latency_ms")?,
        p99: millis("p99_latency_ms")?,
        generator_busy: busy.map(|busy| busy.as_secs_f64() / seconds),
        ..Sample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\
        \"p99_latency_ms\",\"max_latency_ms\"\n\"DECRBY a 1\",\"16806.72\",\"0.928\",\"0.248\",\"0.423\",\"4.567\",\"7.831\",\"8.319\"\n";

    #[test]
    fn figures_are_found_by_name() {
        let sample = parse(OUTPUT, 2_000, Some(Duration::from_millis(60))).unwrap();
        assert_eq!((sample.responses, sample.elapsed.as_millis()), (2_000, 119));
        assert_eq!((sample.p50, sample.p99), (Some(Duration::from_micros(423)), Some(Duration::from_micros(7_831))));
        assert!(sample.generator_busy > Some(0.49) && sample.generator_busy < Some(0.51), "{sample:?}");
        assert_eq!(commands_in(Duration::from_millis(500), &sample), 8_403);
    }

    #[test]
    fn output_without_figures_is_an_error() {
        for output in ["", "Could not connect to Redis", "\"test\",\"rps\"\n\"DECRBY\",\"0\"\n"] {
            let error = parse(output, 1, None).unwrap_err().to_string();
            assert!(error.starts_with("redis-benchmark printed no rps"), "{error}");
        }
    }
}
