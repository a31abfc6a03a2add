//! Mutated request targets and headers. Every request that reaches the upstream must have been charged at the price of
//! the route that the most lenient upstream would take it for, and must not have headers that only the gateway may set.

use super::Setting;
use super::fleet::{Fleet, verify};
use super::raw_upstream::{RawUpstream, Seen, catalogue};
use super::report::Report;
use super::rng::Rng;
use crate::client::exchange;
use crate::response::Response;
use crate::site::Site;

const CHEAP: u32 = 1;
const EXPENSIVE: u32 = 1000;

/// Routes where a literal segment competes with a parameter, such as `/v1/{document}` and `/v1/export`.
const ROUTES: &[(&str, u32)] = &[("/v1/{document}", CHEAP), ("/v1/export", EXPENSIVE), ("/v1/{document}/pages", CHEAP)];

/// Targets to mutate.
const SEEDS: &[&str] = &["/v1/export", "/v1/abc", "/v1/abc/pages", "/v1/EXPORT", "/v1/export;a=1", "/v1/expor%74"];

/// Fragments that servers interpret differently.
const PIECES: &[&str] = &[
    "/",
    "//",
    ".",
    "..",
    "/./",
    "/../",
    ";",
    ";a=1",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    "%00",
    "%0a",
    "%09",
    "%20",
    "%2e",
    "%2E%2E",
    "%252e",
    "%252f",
    "%3b",
    "%3B",
    "?",
    "?a=1",
    "#",
    "%23",
    "%3f",
    "%c0%ae",
    "%ef%bd%85",
    "%EF%BC%A5",
    "%c5%bf",
    "%e2%84%aa",
    "%65",
    "%45",
    "%78",
    "%58",
    "%70",
    "%6F",
    "%72",
    "%54",
    "e",
    "E",
    "export",
    "EXPORT",
    "v1",
    "V1",
    "+",
    ":",
    "@",
    "&",
    "=",
    "%c3%a9",
    "\u{e9}",
    "%ff",
    "%u0065",
    "~",
    "*",
    "|",
    "%7f",
    "%80",
    "%cc%81",
    "%e2%80%8b",
    "%ad",
];

/// Headers that only the gateway, or no one, may send to the upstream; each is tried in several spellings.
const CLAIMS: &[&str] = &[
    "X-Metering-Org-Id",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Prefix",
    "X-Real-IP",
    "X-HTTP-Method-Override",
    "X-HTTP-Method",
    "X-Method-Override",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-BDS-Internal-Billing-Secret",
    "X-BDS-Credit-Charged",
    "X-API-Key",
    "Api-Key",
    "X-Goog-Api-Key",
    "Forwarded",
    "Cookie",
];

const FORGED: &str = "forged-by-the-client";

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let fleet = Fleet::new(Site::new());
    let upstream = RawUpstream::start(|_| vec![b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec()]);
    let flags = catalogue(&fleet.site, ROUTES);
    let server = fleet.server().args(["--upstream", &upstream.url()]).args(flags).start();
    let key = fleet.accounts[0].api_key.as_str();
    let mut sent = 0_u64;
    while setting.has_time_left() || sent < 300 {
        sent += 1;
        let request = request(&mut setting.rng, key);
        let raw = exchange(server.address(), &request).unwrap_or_default();
        report.add("requests", 1);
        let mut seen = upstream.take_seen();
        if setting.plant && sent.is_multiple_of(20) {
            seen.iter_mut().for_each(tamper);
        }
        let charged = charged(&raw);
        report.add("reached the upstream", u64::try_from(seen.len()).unwrap_or(u64::MAX));
        if seen.len() > 1 {
            report.loss(format!("one request reached the upstream as {} requests: {}", seen.len(), shown(&request)));
        }
        for seen in &seen {
            check_seen(seen, charged.as_deref(), report);
        }
        if charged.is_some() && seen.is_empty() {
            report.loss(format!("charged, but nothing reached the upstream: {}", shown(&request)));
        }
        if let Ok(response) = Response::parse(&raw)
            && (500..600).contains(&response.status)
        {
            report.loss(format!("status {} for {}", response.status, shown(&request)));
        }
    }
    drop(server);
    verify(&fleet.site, report);
}

/// The charge in credits, according to the response.
fn charged(raw: &[u8]) -> Option<String> {
    let response = Response::parse(raw).ok().filter(|response| response.status == 200)?;
    response.header("x-bds-credit-charged").map(str::to_owned)
}

fn check_seen(seen: &Seen, charged: Option<&str>, report: &mut Report) {
    let Some(charged) = charged else {
        report.loss(format!("{} reached the upstream without a charge", seen.target));
        return;
    };
    // 1000 base calls cost more than a tenth of a credit; one costs far less.
    let is_expensive = !charged.starts_with("0.000") && charged.starts_with("0.1");
    if careless_reading(&seen.target) == "/v1/export" {
        report.add("read as the expensive route", 1);
        if !is_expensive {
            report.loss(format!("{} was charged {charged}, but may be read as /v1/export", seen.target));
        }
    }
    for (name, value) in &seen.headers {
        let dashed = name.replace('_', "-");
        if value.contains(FORGED) && CLAIMS.iter().any(|claim| claim.eq_ignore_ascii_case(&dashed)) {
            report.loss(format!("the client's {name} reached the upstream"));
        }
    }
    if seen.header("authorization").is_some() {
        report.loss("the client's key reached the upstream");
    }
}

/// The planted bug: the upstream gets another path and other headers than the client paid for.
fn tamper(seen: &mut Seen) {
    seen.target = "/v1/EXPORT;x=1".to_owned();
    seen.headers.push(("x_metering_org_id".to_owned(), FORGED.to_owned()));
}

fn request(rng: &mut Rng, key: &str) -> Vec<u8> {
    let target = target(rng);
    let mut headers = String::new();
    for _ in 0..rng.below(4) {
        headers.push_str(&format!("{}: {FORGED}\r\n", spelled(CLAIMS[rng.index(CLAIMS.len())], rng)));
    }
    let method = *rng.pick(&["GET", "GET", "GET", "GET", "get", "HEAD", "POST"]);
    format!(
        "{method} {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n{headers}Connection: close\r\n\r\n"
    )
    .into_bytes()
}

fn target(rng: &mut Rng) -> String {
    let mut target = (*rng.pick(SEEDS)).to_owned();
    for _ in 0..rng.below(4) {
        let boundaries: Vec<usize> = target.char_indices().map(|(at, _)| at).chain([target.len()]).collect();
        let at = *rng.pick(&boundaries);
        match rng.below(3) {
            0 => target.insert_str(at, PIECES[rng.index(PIECES.len())]),
            1 if at < target.len() => {
                let old = target.remove(at);
                let encoded: String = old.to_string().bytes().map(|byte| format!("%{byte:02x}")).collect();
                target.insert_str(at, if rng.one_in(2) { &encoded } else { PIECES[rng.index(PIECES.len())] });
            }
            _ => target = flipped(&target, at),
        }
    }
    target
}

/// The text with the case of one letter changed.
fn flipped(text: &str, at: usize) -> String {
    let flip = |(position, letter): (usize, char)| match letter {
        letter if position != at => letter,
        letter if letter.is_ascii_lowercase() => letter.to_ascii_uppercase(),
        letter => letter.to_ascii_lowercase(),
    };
    text.char_indices().map(flip).collect()
}

/// A header name in one of the spellings that an upstream may treat as equal.
fn spelled(name: &str, rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => name.to_owned(),
        1 => name.to_ascii_lowercase(),
        2 => name.replace('-', "_"),
        _ => name.replacen('-', "_", 1).to_ascii_uppercase(),
    }
}

fn shown(request: &[u8]) -> String {
    String::from_utf8_lossy(request).lines().next().unwrap_or_default().to_owned()
}

/// The target as the most lenient upstream parses it: without the query and segment parameters, decoded until nothing
/// is left to decode, in lower case, full-width letters as ASCII, and without empty and dot segments.
fn careless_reading(target: &str) -> String {
    let path = target.split(['?', '#']).next().unwrap_or_default();
    let mut text = path.to_owned();
    for _ in 0..3 {
        text = decoded(&text);
    }
    let folded: String = text.chars().filter_map(ascii_form).collect::<String>().to_lowercase().replace('\\', "/");
    let mut segments = Vec::new();
    for segment in folded.split('/') {
        let segment = segment.split(';').next().unwrap_or_default().trim_matches([' ', '\t', '\n', '\r', '\0']);
        match segment.trim_end_matches('.') {
            "" if segment == ".." => drop(segments.pop()),
            "" => {}
            segment => segments.push(segment.to_owned()),
        }
    }
    format!("/{}", segments.join("/"))
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| bytes[at] == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// The compatible ASCII form of a character; `None` for invisible ones.
fn ascii_form(letter: char) -> Option<char> {
    match letter {
        '\u{200b}'..='\u{200d}' | '\u{ad}' | '\u{feff}' => None,
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(letter) - 0xfee0),
        '\u{17f}' => Some('s'),
        '\u{212a}' => Some('k'),
        letter => Some(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn careless_reading_finds_the_expensive_route() {
        for spelling in [
            "/v1/export",
            "/v1/EXPORT",
            "/v1/export;x=1",
            "/v1/expor%74",
            "/v1//export/",
            "/v1/a/../export?x=1",
            "/v1/%ef%bd%85xport",
            "/v1/export%00",
            "/v1/export.",
            "/v1/%65%2578port",
            "\\v1\\export",
        ] {
            assert_eq!(careless_reading(spelling), "/v1/export", "{spelling}");
        }
        assert_eq!(careless_reading("/v1/exports"), "/v1/exports");
        assert_eq!(careless_reading("/v1/export/pages"), "/v1/export/pages");
    }
}
