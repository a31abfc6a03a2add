//! Runs `wrk` (Debian's package), which costs less of the shared cores than the benchmark's own load generator.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::bench::sample::Sample;
use crate::bench::{Failure, interrupt};
use crate::process::reaped_time;

/// The maximum factor by which a measurement is extended when wrk got no processor time.
const MAX_FACTOR: u32 = 64;

const SCRIPT: &str = include_str!("load.lua");

/// The program, and a folder for its script and requests.
#[derive(Debug)]
pub(in crate::bench) struct Wrk {
    program: PathBuf,
    folder: TempDir,
}

impl Wrk {
    pub(super) fn new(program: &Path) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("metering-bench-wrk-").tempdir()?;
        fs::write(folder.path().join("load.lua"), SCRIPT)?;
        Ok(Self { program: program.to_owned(), folder })
    }

    pub(super) fn measure(
        &self,
        address: SocketAddr,
        requests: &[Vec<u8>],
        first: usize,
        connections: usize,
        time: Duration,
    ) -> Result<Sample, Failure> {
        let file = self.folder.path().join("requests");
        fs::write(&file, requests.join(&0))?;
        let args = ["-t1", "-d1h", "--timeout=10s", &format!("-c{connections}"), &format!("http://{address}/")];
        let script_args = ["--", &file.to_string_lossy(), &first.to_string()].map(str::to_owned);
        let mut longer = 1;
        let (output, busy) = loop {
            let (output, busy) = self.run(&args, &script_args, time * longer)?;
            if has_run(&output) || longer >= MAX_FACTOR {
                break (output, busy);
            }
            interrupt::check()?;
            longer *= 4;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("wrk ended with {}: {text}{errors}", output.status).into());
        }
        let sample = parse(&text)?;
        Ok(Sample {
            cut_off: u64::try_from(connections)?,
            generator_busy: busy.map(|busy| share(busy, &sample)),
            ..sample
        })
    }

    /// Runs it for `time`, and also returns its processor time.
    fn run(
        &self,
        args: &[&str],
        script_args: &[String],
        time: Duration,
    ) -> Result<(Output, Option<Duration>), Failure> {
        // wrk's own duration has whole seconds; it ends properly on SIGINT. Should the benchmark be killed, `timeout`
        // still ends it.
        let mut command = Command::new("timeout");
        // It misses a SIGINT that comes just before it starts to wait, so use `--kill-after`.
        command
            .args(["--foreground", "--preserve-status", "--signal=INT", "--kill-after=15s"])
            .arg(time.as_secs_f64().to_string());
        // A shell's background job ignores SIGINT, and so would wrk until it has started.
        command.args(["env", "--default-signal=INT"]);
        command.arg(&self.program).arg("-s").arg(self.folder.path().join("load.lua")).args(args).args(script_args);
        let before = reaped_time();
        let output = command.stdin(Stdio::null()).output()?;
        Ok((output, reaped_time().zip(before).map(|(after, before)| after.saturating_sub(before))))
    }
}

/// Whether it had a response, or failed by itself. On a busy machine, or with many keys, SIGINT may come before its
/// threads have started, or be missed.
fn has_run(output: &Output) -> bool {
    const INTERRUPTED: i32 = 130;
    const KILLED: i32 = 137;
    !matches!(output.status.code(), Some(INTERRUPTED | KILLED))
        && !String::from_utf8_lossy(&output.stdout).contains(" requests=0 ")
}

#[expect(clippy::float_arithmetic, reason = "a figure for people")]
fn share(busy: Duration, sample: &Sample) -> f64 {
    busy.as_secs_f64() / sample.elapsed.as_secs_f64().max(1e-9)
}

/// Parses what the script prints at the end.
fn parse(output: &str) -> Result<Sample, Failure> {
    let line = output.lines().find_map(|line| line.strip_prefix("measured "));
    let line = line.ok_or_else(|| format!("wrk printed no result: {output}"))?;
    let field = |name: &str| {
        let mut fields = line.split(' ').filter_map(|field| field.split_once('='));
        let value = fields.find(|(found, _)| *found == name).and_then(|(_, value)| value.parse::<u64>().ok());
        value.ok_or_else(|| format!("wrk's result has no {name}: {line}"))
    };
    let (responses, refused, failed) = (field("requests")?, field("refused")?, field("failed")?);
    if failed > 0 {
        return Err(format!("{failed} connections failed").into());
    }
    if refused > 0 {
        return Err(format!("{refused} of {responses} responses had status 400 or above").into());
    }
    if responses == 0 {
        return Err("there was no response".into());
    }
    Ok(Sample {
        responses,
        elapsed: Duration::from_micros(field("micros")?),
        p50: Some(Duration::from_micros(field("p50")?)),
        p99: Some(Duration::from_micros(field("p99")?)),
        ..Sample::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tools::Tools;
    use crate::load::request;
    use crate::scripted::{Reply, serve};

    #[test]
    fn result_line_is_parsed() {
        let output = "Running 60m test @ http://127.0.0.1:1/\n  22227 requests in 203.88ms, 3.14MB read\n\
                      measured requests=22227 micros=203881 p50=87 p99=9860 refused=0 failed=0\n";
        let sample = parse(output).unwrap();
        assert_eq!((sample.responses, sample.elapsed), (22_227, Duration::from_micros(203_881)));
        assert_eq!((sample.p50, sample.p99), (Some(Duration::from_micros(87)), Some(Duration::from_micros(9_860))));
        assert_eq!(format!("{:.2}", share(Duration::from_micros(101_940), &sample)), "0.50");
    }

    #[test]
    fn a_measurement_too_short_for_wrk_to_start_takes_longer() {
        if crate::skipped::by("TESTS_SKIP_YARDSTICKS") {
            return;
        }
        let program = Tools::find().wrk.expect("wrk is installed; ./test.sh does that");
        let address = serve(|_| Reply::Send(vec![b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec()]));
        let requests = [request("GET", "/", None, &[])];
        let sample = Wrk::new(&program).unwrap().measure(address, &requests, 0, 1, Duration::from_millis(20));
        assert!(sample.unwrap().responses > 0);
    }

    #[test]
    fn failed_work_is_an_error() {
        let line = |requests, refused, failed| {
            format!("measured requests={requests} micros=1 p50=1 p99=1 refused={refused} failed={failed}")
        };
        // output, what the error says
        let table = [
            (line(9, 2, 0), "2 of 9 responses had status 400 or above"),
            (line(9, 2, 3), "3 connections failed"),
            (line(0, 0, 0), "there was no response"),
            ("measured requests=1 refused=0 failed=0".to_owned(), "wrk's result has no micros"),
            ("unable to connect".to_owned(), "wrk printed no result: unable to connect"),
        ];
        for (output, expected) in table {
            let error = parse(&output).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{output}: {error}");
        }
    }
}
