//! `metering catch-up` and `metering stream`, against a service with blocks that fails as the test says.

mod crashes;
mod disk;
mod failures;
mod interruptions;
mod money;
mod runs;
mod stream_failures;
mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use metering_core::{ApiKey, SystemRandomness};

use crate::program::{Program, RunOutput};
use crate::stand_in::{NEVER, RecordedRequest, Reply, StandIn};

/// The path of the latest block; with a number appended, of that block.
const BLOCKS: &str = "/mpp/snapshot/allTrades";
/// A route that responds with a stream.
const STREAM: &str = "/mpp/stream/allTrades";
const CATALOGUE: &str = include_str!("../../../metering-sample/routes.json");
/// The command that most tests run: it starts in front of the service's latest block, 500.
const CATCH_UP: &str = "catch-up --from 490 --output blocks.jsonl";
const OUTPUT: &str = "blocks.jsonl";

/// The service.
struct Service {
    stand_in: StandIn,
    latest: Arc<AtomicU64>,
    delay: Arc<AtomicU64>,
}

/// The program with a key for a service that has the blocks up to this one.
fn scene(latest: u64) -> (Program, Service) {
    let (mut program, service) = (Program::new(), Service::at(latest));
    program.set("METERING_CLIENT_URL", service.stand_in.url());
    program.set("METERING_CLIENT_API_KEY", ApiKey::generate(&SystemRandomness).expose());
    (program, service)
}

impl Service {
    fn at(latest: u64) -> Self {
        let (latest, delay) = (Arc::new(AtomicU64::new(latest)), Arc::new(AtomicU64::new(0)));
        let (newest, late) = (Arc::clone(&latest), Arc::clone(&delay));
        let stand_in = StandIn::serving(move |request| {
            block(request, newest.load(Ordering::SeqCst)).late(Duration::from_millis(late.load(Ordering::SeqCst)))
        });
        Self { stand_in, latest, delay }
    }

    /// Lets the chain grow, or restores it to an earlier state.
    fn is_at(&self, latest: u64) {
        self.latest.store(latest, Ordering::SeqCst);
    }

    /// Delays every block from now on.
    fn delay(&self, millis: u64) {
        self.delay.store(millis, Ordering::SeqCst);
    }

    /// Responds to the next request for a target with this.
    fn then(&self, target: &str, reply: Reply) -> &Self {
        self.stand_in.on(target, reply);
        self
    }

    /// The same for the route of a block.
    fn then_at(&self, block: u64, reply: Reply) -> &Self {
        self.then(&format!("{BLOCKS}/{block}"), reply)
    }

    /// The requests for its metered routes since the last call.
    fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.stand_in.take_requests().into_iter();
        requests.filter(|request| request.target != "/endpoints.json").collect()
    }

    /// The blocks that were requested since the last call; `None` is the latest.
    fn requested(&self) -> Vec<Option<u64>> {
        let number = |request: RecordedRequest| request.target.strip_prefix(BLOCKS)?.strip_prefix('/')?.parse().ok();
        self.requests().into_iter().map(number).collect()
    }

    /// Waits for a request for a block.
    fn wait_for(&self, block: u64) {
        self.stand_in.await_requests(&format!("{BLOCKS}/{block}"), 1);
    }
}

/// What the service responds to a request as usual.
fn block(request: &RecordedRequest, latest: u64) -> Reply {
    if request.target == "/endpoints.json" {
        return Reply::ok(CATALOGUE);
    }
    assert!(request.key().unwrap().starts_with("sk_live_"));
    assert_eq!(request.header("x-bds-client-source"), Some("cli"));
    let number = match request.target.strip_prefix(BLOCKS) {
        Some("") => Some(latest),
        Some(rest) => rest.strip_prefix('/').and_then(|number| number.parse().ok()),
        None => None,
    };
    match number {
        Some(number) if number <= latest => good(document(number)),
        Some(_) => Reply::error(404, "block_not_final"),
        None => Reply::error(404, "unknown_route"),
    }
}

/// A response that was charged.
fn good(body: impl Into<String>) -> Reply {
    Reply::ok(body.into()).charged("0.0001388889", "1.2345678901")
}

/// An error that says when to try again.
fn busy(status: u16, code: &str, seconds: u64) -> Reply {
    let body = format!(r#"{{"error":"{code}","message":"The service says {code}.","retry_after_sec":{seconds}}}"#);
    Reply::new(status, body).header("retry-after", seconds)
}

/// A response that says that no credits are left.
fn no_credits() -> Reply {
    let body = r#"{"error":"insufficient_credits","message":"No credits.","credit_balance":-0.0000694444}"#;
    Reply::new(402, body)
}

/// A stream that ends after these events.
fn ending(events: &[&str]) -> Reply {
    good(events.concat()).header("content-type", "text/event-stream")
}

/// A stream that continues without end after these events.
fn endless(events: &[&str]) -> Reply {
    ending(events).then(NEVER, "")
}

/// A stream that breaks off after these events.
fn broken(events: &[&str]) -> Reply {
    ending(events).cut_off()
}

/// The document of a block, with numbers that no float can hold.
fn document(block: u64) -> String {
    format!(
        r#"{{"sample":true,"block_number":{block},"price":0.10000000000000000001{block},"big":98765432109876543210}}"#
    )
}

/// The lines of consecutive blocks.
fn lines(blocks: std::ops::RangeInclusive<u64>) -> String {
    blocks.map(|block| document(block) + "\n").collect()
}

/// Runs [`CATCH_UP`], which ends with this code and then has written the blocks from 490 to `last`.
#[track_caller]
fn writes(program: &Program, options: &str, code: i32, last: u64) -> RunOutput {
    let ran = program.run(&format!("{CATCH_UP} {options}")).expect(code);
    assert_eq!(program.read(OUTPUT), lines(490..=last), "{ran:?}");
    ran
}
