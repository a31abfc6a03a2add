//! Charged requests to an upstream that takes a while, on a disk whose flushes take a while too, compared with the
//! longer of the two: a request that waits for one after the other takes their sum.
//!
//! The shim of the chaos campaigns delays the flushes, so the part needs a C compiler. How long upstream and flushes take
//! is measured in each round. Each key is used once beforehand.

mod fleet;

use std::io::Write;
use std::time::Duration;

use hyper::body::Bytes;

use super::accounts::Populated;
use super::arguments::rising;
use super::bare::{Listener, whole};
use super::generator::Generator;
use super::sample::Sample;
use super::table::{Row, Table};
use super::tools::Tools;
use super::turns::{Measured, Ratio, in_turns};
use super::{Arguments, Failure, format};
use fleet::{FLUSH_DELAY, Fleet, Kind, Way};

/// Keys that send requests, each of a separate account.
const KEYS: usize = 1_000;

/// How long the upstream waits before it responds.
const UPSTREAM_DELAY: Duration = Duration::from_millis(2);

/// Measures each number of connections, and writes the table.
pub(super) async fn write(arguments: &Arguments, tools: &Tools, out: &mut dyn Write) -> Result<(), Failure> {
    let Some(cc) = &tools.cc else {
        eprintln!("overlap: left out");
        return Ok(());
    };
    let mut table = Table::default();
    let generator = Generator::choose(tools)?;
    let body = Bytes::from_static(b"{\"price\": 1}");
    let upstream = Listener::serve_after(UPSTREAM_DELAY, move |_| whole("application/json", body.clone()))?;
    let keys = if arguments.quick { KEYS / 10 } else { KEYS };
    let accounts = Populated::make(&arguments.data_dir, keys).await?;
    let mut fleet = Fleet::start(arguments, cc, accounts, upstream.address())?;
    fleet.warm_up()?;
    for connections in rising(&arguments.connections) {
        eprintln!("overlap: {connections} connections");
        let measured = in_turns(arguments.rounds, fleet.ways(), |way| {
            fleet.measure(way, |target| generator.measure(target, connections, arguments.time))
        })?;
        fleet.add_charged(&measured);
        let not_metered = fleet.ways().iter().position(|way| way.kind == Kind::NotMetered);
        for (way, found) in fleet.ways().iter().zip(&measured) {
            let of_the_longer = not_metered.and_then(|yardstick| of_the_longer(found, &measured[yardstick]));
            table.row(row(connections, way, found, of_the_longer));
        }
    }
    fleet.end().await?;
    let [upstream, flush] = [UPSTREAM_DELAY, FLUSH_DELAY].map(humantime::format_duration);
    let title = format!("An upstream that waits {upstream}, and flushes delayed by {flush}; load from {generator}");
    Ok(table.write(&title, out)?)
}

/// The time of a charged request, divided by the longer of the upstream's time and the flush's, each as its p50 in the
/// same round. The upstream's time is that of a request that is not metered.
fn of_the_longer(charged: &Measured, not_metered: &Measured) -> Option<Ratio> {
    let ratio = |(charged, not_metered): (&Sample, &Sample)| {
        let longer = not_metered.p50?.max(charged.flushes?.p50?);
        Some(format::ratio(charged.p50?.as_secs_f64(), longer.as_secs_f64()))
    };
    let ratios = charged.samples().iter().zip(not_metered.samples()).map(ratio).collect::<Option<Vec<f64>>>()?;
    Some(Ratio::of_rounds(ratios))
}

fn row(connections: usize, way: &Way, found: &Measured, of_the_longer: Option<Ratio>) -> Row {
    let sample = found.median();
    let per_flush = sample.flushes.map(|flushes| format::ratio(sample.responses as f64, f64::from(flushes.count)));
    Row::default()
        .count("Connections", connections)
        .text("Way", way.kind.to_string())
        .speed(sample)
        .latency("Flush p50", sample.flushes.and_then(|flushes| flushes.p50))
        .ratio("Of the longer", of_the_longer)
        .number(
            "Charges per flush",
            per_flush.map_or_else(|| format::NONE.to_owned(), |charges| format!("{charges:.1}")),
        )
        .generator_busy(sample)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shim::Flushes;
    use std::num::NonZeroUsize;

    /// Rounds with these times in milliseconds: of requests, and of flushes.
    fn measured(rounds: &[(u64, Option<u64>)]) -> Measured {
        let mut rounds_left = rounds.iter();
        let millis = |millis: u64| Some(Duration::from_millis(millis));
        let measured = in_turns(NonZeroUsize::new(rounds.len()).unwrap(), &[()], |_| {
            let (p50, flush) = *rounds_left.next().unwrap();
            let flushes = flush.map(|flush| Flushes { count: 1, p50: millis(flush) });
            Ok(Sample { p50: millis(p50), flushes, ..Sample::default() })
        });
        measured.unwrap().remove(0)
    }

    #[test]
    fn charged_requests_are_compared_with_the_longer_in_the_same_round() {
        let not_metered = measured(&[(2, None), (8, None), (4, None)]);
        let charged = measured(&[(6, Some(4)), (10, Some(5)), (8, Some(4))]);
        let ratio = of_the_longer(&charged, &not_metered);
        assert_eq!(ratio, Some(Ratio { median: 1.5, lowest: 1.25, highest: 2.0 }));
        assert_eq!(of_the_longer(&not_metered, &not_metered), None);
    }
}
