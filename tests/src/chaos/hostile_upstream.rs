//! An upstream that breaks the rules: callers get one well-formed response each, pay only for what was delivered, and
//! see no header that would affect the gateway's origin.

use std::thread;
use std::time::Duration;

use metering_core::Credits;

use super::Setting;
use super::faulty_proxy::Bug;
use super::fleet::{Fleet, verify, within};
use super::kill::targets_for;
use super::raw_upstream::{RawUpstream, catalogue};
use super::report::Report;
use super::rng::Rng;
use crate::client::{Client, exchange};
use crate::response::Response;
use crate::site::Site;

/// What must be true of a response, in addition to the rules for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Delivered, and charged once.
    Delivered,
    /// 502 or similar, and not charged.
    Refunded,
    /// Either delivered or refunded.
    Either,
}

use Expected::{Delivered, Either, Refunded};

const CASES: &[(&str, &[&str], Expected)] = &[
    ("plain", &["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"], Delivered),
    ("chunked", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"], Delivered),
    ("until-close", &["HTTP/1.1 200 OK\r\n\r\nok"], Delivered),
    ("switching", &["HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nraw"], Refunded),
    ("continue-only", &["HTTP/1.1 100 Continue\r\n\r\n"], Refunded),
    ("hints-only", &["HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"], Refunded),
    (
        "hints-first",
        &["HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"],
        Either,
    ),
    ("nothing", &[], Refunded),
    ("garbage", &["\0\u{1}\u{2}garbage\r\n\r\n"], Refunded),
    ("half-head", &["HTTP/1.1 200 OK\r\nContent-"], Refunded),
    ("no-first-byte", &["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"], Refunded),
    ("no-first-chunk", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], Refunded),
    ("short-body", &["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", "some"], Either),
    ("short-chunk", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "9\r\nsome"], Either),
    ("bad-chunk", &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n"], Either),
    ("two-lengths", &["HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\nok"], Either),
    (
        "length-and-chunks",
        &["HTTP/1.1 200 OK\r\nContent-Length: 99\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"],
        Either,
    ),
    (
        "second-response",
        &["HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"],
        Either,
    ),
    ("folded", &["HTTP/1.1 200 OK\r\nX-A: 1\r\n 2\r\nContent-Length: 2\r\n\r\nok"], Either),
    ("unavailable", &["HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"], Refunded),
    ("not-found", &["HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"], Delivered),
    ("status-999", &["HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok"], Either),
    ("empty", &["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], Delivered),
    ("no-content", &["HTTP/1.1 204 No Content\r\n\r\n"], Delivered),
    (
        "takes-over",
        &[
            "HTTP/1.1 200 OK\r\nService-Worker-Allowed: /\r\nClear-Site-Data: \"*\"\r\nAlt-Svc: h2=\":1\"\r\nSet-Cookie: a=b\r\n\
           Strict-Transport-Security: max-age=9\r\nRefresh: 0;url=/x\r\nX-BDS-Credit-Balance: 1000000\r\n\
           X-Metering-Org-Id: org_forged\r\nContent-Length: 2\r\n\r\nok",
        ],
        Delivered,
    ),
];

/// The price of each route of the catalogue, in base calls and in atoms. It is a hundredth of a credit, so that
/// balances are printed exactly.
const WEIGHT: u32 = 72;
const PRICE: u64 = 72_000_000;

/// Headers that the upstream must not send to a browser with the gateway's pages open, and claims that it must not
/// make.
const FORBIDDEN_HEADERS: &[(&str, &str)] = &[
    ("service-worker-allowed", ""),
    ("clear-site-data", ""),
    ("alt-svc", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("refresh", ""),
    ("x-metering-org-id", "org_forged"),
    ("x-bds-credit-balance", "1000000"),
];

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let fleet = Fleet::new(Site::new());
    let upstream = RawUpstream::start(|seen| respond(&seen.target));
    let flags = catalogue(&fleet.site, &[("/v1/{case}", WEIGHT), ("/v1/{case}/{seed}", WEIGHT)]);
    let server = fleet.server().args(["--upstream", &upstream.url()]).args(flags).start();
    fleet.targets.set([server.address()]);
    let targets_for = targets_for(&fleet.targets, setting.plant, Bug::AddHeader);
    let key = &fleet.accounts[0].api_key;
    let client = server.client_with(key);
    let full = balance(&client);
    let paid = |client: &Client| (full - balance(client)) / PRICE;
    let mut charged_before = 0;
    let mut tried = 0;
    while tried < CASES.len() || setting.has_time_left() {
        let (case, expected, path) = match CASES.get(tried) {
            Some((name, _, expected)) => (*name, *expected, format!("/v1/{name}")),
            None => ("mutated", Either, format!("/v1/mutated/{}", setting.rng.next())),
        };
        tried += 1;
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n\r\n");
        let address = targets_for.pick(0).expect("the server runs");
        let raw = exchange(address, request.as_bytes()).unwrap_or_default();
        report.add("requests", 1);
        // A refund is on record before its response is sent. After a break in mid-body, the client may see the break
        // before the record is written.
        let mut charged = 0;
        let settled = within(Duration::from_secs(2), || {
            charged = paid(&client).saturating_sub(charged_before);
            charged <= 1 && charge_is_correct(&raw, charged)
        });
        charged_before += charged;
        report.add("charged", charged);
        for problem in problems(&raw, expected, charged, settled) {
            report.loss(format!("{case}: {problem}"));
        }
        let _ = upstream.take_seen();
    }
    if !within(Duration::from_secs(5), || server.client().get("/health").status == 200) {
        report.loss("the server was not healthy afterwards");
    }
    thread::sleep(Duration::from_millis(100));
    drop(server);
    verify(&fleet.site, report);
}

/// The balance, in atoms.
fn balance(client: &Client) -> u64 {
    let printed = client.get("/credits/balance").expect(200).member("credit_balance");
    let balance: Credits = printed.parse().expect("a balance is an amount of credits");
    u64::try_from(balance.atoms()).expect("the account is never overdrawn")
}

/// Whether the charge fits the response; a body that broke off may be charged or not.
fn charge_is_correct(raw: &[u8], charged: u64) -> bool {
    match Response::parse(raw) {
        Ok(response) if is_refunded(&response) => charged == 0,
        // Other upstream failures may be charged or not.
        Ok(response) if (500..600).contains(&response.status) => charged <= 1,
        Ok(_) => charged == 1,
        Err(_) => charged <= 1,
    }
}

/// The statuses that the gateway refunds: 502, 503 and 504, its own or the upstream's.
fn is_refunded(response: &Response) -> bool {
    (502..=504).contains(&response.status)
}

fn problems(raw: &[u8], expected: Expected, charged: u64, settled: bool) -> Vec<String> {
    let mut problems = Vec::new();
    let parsed = Response::parse(raw);
    // A body may quote a response.
    let quoted = parsed.as_ref().map_or(0, |response| response.text().matches("HTTP/1.1 ").count());
    let heads = String::from_utf8_lossy(raw).matches("HTTP/1.1 ").count().saturating_sub(quoted);
    if parsed.is_ok() && heads > 1 {
        problems.push(format!("{heads} responses to one request"));
    }
    if !settled {
        let status = parsed.as_ref().map_or(0, |response| response.status);
        problems.push(format!("charged {charged} times for a response with status {status}"));
    }
    match (&parsed, expected) {
        (Ok(response), Refunded) if !is_refunded(response) => {
            problems.push(format!("not refunded: status {}", response.status))
        }
        (Err(_), Refunded) if charged > 0 => problems.push("charged, but nothing was delivered".to_owned()),
        (Ok(response), Delivered) if is_refunded(response) => {
            problems.push(format!("not delivered: status {}", response.status))
        }
        (Err(error), Delivered) => problems.push(format!("not delivered: {error}")),
        _ => {}
    }
    let headers = parsed.map(|response| response.headers).unwrap_or_default();
    for (name, value) in FORBIDDEN_HEADERS {
        if headers.iter().any(|(found, given)| found == name && (value.is_empty() || given == value)) {
            problems.push(format!("the header {name} was passed on"));
        }
    }
    problems
}

fn respond(target: &str) -> Vec<Vec<u8>> {
    let mut parts = target.split('/').skip(2);
    let name = parts.next().unwrap_or_default();
    if let Some((_, pieces, _)) = CASES.iter().find(|(case, _, _)| *case == name) {
        return pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect();
    }
    let seed = parts.next().and_then(|seed| seed.parse().ok()).unwrap_or_default();
    mutated(&mut Rng::new(seed))
}

/// A well-formed response with a few bytes changed, removed or doubled.
fn mutated(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (_, pieces, _) = rng.pick(CASES);
    let mut bytes: Vec<u8> = pieces.concat().into_bytes();
    for _ in 0..=rng.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = rng.index(bytes.len());
        match rng.below(4) {
            0 => bytes[at] = *rng.pick(b"\r\n\0 :;,0Az\xff"),
            1 => drop(bytes.remove(at)),
            2 => bytes.insert(at, *rng.pick(b"\r\n\0 :;,0Az\xff")),
            _ => bytes.truncate(at),
        }
    }
    let cut = if bytes.is_empty() { 0 } else { rng.index(bytes.len()) };
    let rest = bytes.split_off(cut);
    vec![bytes, rest]
}
