//! The headers that proxies really send, and the upstreams that get no requests, from the metrics of the running
//! server.

use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::Request;
use metering_client::{HttpTransport, Transport};
use metering_config::server::Config;

use super::findings::Findings;

const CHECK: &str = "proxies";
const WAIT: Duration = Duration::from_secs(10);
const UPSTREAMS: &str = "upstreams";
const METRIC: &str = "metering_forwarded_requests_total";

/// The server's counts of requests since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    proxy: u64,
    proxy_without_header: u64,
    untrusted_with_header: u64,
}

pub(super) async fn check(config: &Config, findings: &mut Findings) {
    let address = match (&config.admin_listen, &config.tls) {
        (Some(admin), _) => admin,
        (None, None) => &config.listen,
        (None, Some(_)) => return,
    };
    match metrics(&format!("http://{address}")).await {
        Ok(text) => {
            judge(Counts::of(&text), findings);
            judge_upstreams(&text, findings);
        }
        Err(problem) => findings.ok(CHECK, format_args!("no running server to ask what proxies send: {problem}")),
    }
}

async fn metrics(url: &str) -> Result<String, String> {
    let service = url.parse().map_err(|error: metering_client::ServiceUrlError| error.to_string())?;
    let transport = HttpTransport::new(service, WAIT).map_err(|error| error.to_string())?;
    let request = Request::get("/metrics").body(Bytes::new()).map_err(|error| error.to_string())?;
    let read = async {
        let response = transport.send(request).await.map_err(|error| error.to_string())?;
        let status = response.status();
        if !status.is_success() {
            return Err(format!("{url}/metrics: {status}"));
        }
        let pieces: Vec<Bytes> = response.into_body().try_collect().await.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&pieces.concat()).into_owned())
    };
    tokio::time::timeout(WAIT, read).await.unwrap_or_else(|_| Err(format!("no response within {} s", WAIT.as_secs())))
}

impl Counts {
    fn of(metrics: &str) -> Self {
        let count = |sender: &str| {
            let name = format!("{METRIC}{{sender=\"{sender}\"}} ");
            metrics.lines().find_map(|line| line.strip_prefix(&name)?.trim().parse().ok()).unwrap_or_default()
        };
        Self {
            proxy: count("proxy"),
            proxy_without_header: count("proxy_without_header"),
            untrusted_with_header: count("untrusted_with_header"),
        }
    }
}

fn judge(counts: Counts, findings: &mut Findings) {
    let Counts { proxy, proxy_without_header, untrusted_with_header } = counts;
    if proxy_without_header > proxy {
        let found =
            format!("{proxy_without_header} requests from trusted proxies have no X-Forwarded-For, {proxy} have one");
        let advice =
            "have the proxy set it (docs/deployment.md): otherwise all clients share its address and its limits";
        findings.warning(CHECK, found, advice);
    }
    if untrusted_with_header > 0 {
        let found =
            format!("{untrusted_with_header} requests with X-Forwarded-For came from addresses that are not trusted");
        let advice = "if your proxy sent them, list it in http.trusted_proxies; the log names the first address. If clients \
                      did, nothing is wrong: the header was ignored";
        findings.warning(CHECK, found, advice);
    }
    if proxy_without_header <= proxy && untrusted_with_header == 0 && proxy > 0 {
        findings.ok(CHECK, format_args!("trusted proxies name the client: {proxy} requests since the server's start"));
    }
}

/// Upstreams that are ejected, or whose health checks fail.
fn judge_upstreams(metrics: &str, findings: &mut Findings) {
    let states =
        metrics.lines().filter_map(|line| line.strip_prefix("metering_upstream_out{upstream=\"")?.split_once("\"} "));
    let (out, used): (Vec<_>, Vec<_>) = states.partition(|(_, value)| value.trim() != "0");
    for (name, _) in &out {
        let advice = "the server's log says why (`upstream`); until it works, the next upstreams of its routes get its \
                      requests";
        findings.warning(UPSTREAMS, format_args!("{name} gets no requests: it failed too often"), advice);
    }
    if out.is_empty() && !used.is_empty() {
        findings.ok(UPSTREAMS, format_args!("all {} are in use", used.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::State;
    use super::*;

    #[test]
    fn counts_are_read_and_judged() {
        let text = |proxy: u64, without: u64, untrusted: u64| {
            format!(
                "# TYPE {METRIC} counter\n{METRIC}{{sender=\"proxy\"}} {proxy}\n\
                 {METRIC}{{sender=\"proxy_without_header\"}} {without}\n\
                 {METRIC}{{sender=\"untrusted_with_header\"}} {untrusted}\nup 1\n"
            )
        };
        // with the header, without it, with it from elsewhere, states
        let table: [(_, _, _, &[State]); 6] = [
            (0, 0, 0, &[]),
            (9, 1, 0, &[State::Ok]),
            (0, 3, 0, &[State::Warning]),
            (9, 0, 2, &[State::Warning]),
            (0, 0, 2, &[State::Warning]),
            (1, 2, 2, &[State::Warning, State::Warning]),
        ];
        for (proxy, without, untrusted, states) in table {
            let mut findings = Findings::default();
            judge(Counts::of(&text(proxy, without, untrusted)), &mut findings);
            let found: Vec<_> = findings.of(CHECK).iter().map(|(state, _)| *state).collect();
            assert_eq!(found, states, "{proxy} {without} {untrusted}");
        }
        assert_eq!(Counts::of("up 1"), Counts::default(), "a server of an earlier version");
    }

    #[test]
    fn upstreams_that_get_no_requests_are_named() {
        let metrics = |us: u8| {
            format!("metering_upstream_out{{upstream=\"eu\"}} 0\nmetering_upstream_out{{upstream=\"us\"}} {us}\nup 1\n")
        };
        let found = |text: &str| {
            let mut findings = Findings::default();
            judge_upstreams(text, &mut findings);
            let found = findings.of(UPSTREAMS).into_iter().map(|(state, text)| (state, text.to_owned()));
            found.collect::<Vec<_>>()
        };
        assert!(found("up 1").is_empty());
        assert_eq!(found(&metrics(0)), [(State::Ok, "all 2 are in use".to_owned())]);
        let out = "us gets no requests: it failed too often".to_owned();
        assert_eq!(found(&metrics(1)), [(State::Warning, out)]);
    }
}
