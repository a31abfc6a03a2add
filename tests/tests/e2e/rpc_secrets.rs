//! RPC URLs belong to the operator: secrets in them never leave the server, whatever goes wrong.

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};
use metering_tests::site::Ran;

use crate::market::{Kind, Market};

/// Providers put their customers' keys into any part of a URL.
const SECRETS: [&str; 4] = ["operator-name", "operator-password", "path-key-5f2c81", "query-key-90ab17"];

/// A provider's error message that repeats the keys from the URL.
const COMPLAINT: &str = "project path-key-5f2c81 (query-key-90ab17) of operator-name is over its limit";

#[track_caller]
fn hides(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

#[track_caller]
fn hides_all(what: &str, ran: &Ran) {
    hides(what, &ran.stdout);
    hides(what, &ran.stderr);
}

/// A market whose only source has a URL with a secret in each part.
fn market() -> Option<(Market, Proxy)> {
    let chain = Chain::start()?;
    let proxy = Proxy::start(&chain);
    let [user, password, path, query] = SECRETS;
    let url = format!("'http://{user}:{password}@{}/v3/{path}?apikey={query}'", proxy.address());
    let market = Market::on(chain, &url, "1", "attempts = 2\nrequest_timeout = '2s'");
    Some((market, proxy))
}

#[test]
fn no_answer_and_no_line_of_the_log_shows_the_keys_of_an_rpc_url() {
    let Some((mut market, proxy)) = market() else { return };
    market.reopen(&[("METERING_LOG__FILTER", "trace"), ("METERING_PAYMENTS__CLAIM_WAIT", "100ms")]);
    let known = market.site.account("1").api_key;
    let faults = [
        Fault::RpcError(-32_005, COMPLAINT),
        Fault::RpcError(-32_000, COMPLAINT),
        Fault::HttpError(401),
        Fault::Garbage(Garbage::Text),
        Fault::TimeOut,
        Fault::WrongChainId(1),
        Fault::NullReceipts,
        Fault::PassThrough,
    ];
    for fault in faults {
        proxy.set(Fault::PassThrough);
        let customer = market.customer();
        let asked = market.ask(Kind::Token, &customer.address()).expect(201);
        let quote = market.quote(Kind::Token, &customer.address());
        let hash = market.pay(Kind::Token, &customer, quote.units);
        let _ = market.chain.mined(&hash);
        proxy.set(fault.clone());
        let claimed = market.claim(&quote, &hash);
        assert_eq!(claimed.status == 200, fault == Fault::PassThrough, "{fault:?}: {}", claimed.text());
        let topped_up = market.top_up(&known, Kind::Token, &hash, None);
        for answer in [asked, claimed, topped_up] {
            hides(&format!("{fault:?}"), &format!("{:?} {}", answer.headers, answer.text()));
        }
    }
    proxy.set(Fault::HttpError(503));
    for path in ["/credits/plans", "/ready", "/metrics", "/openapi.json", "/health"] {
        let answer = market.client().get(path);
        hides(path, &format!("{:?} {}", answer.headers, answer.text()));
    }
    let log = market.server.log();
    assert!(log.contains(&proxy.address().to_string()), "the log names the source: {log}");
    assert!(log.contains("is over its limit"), "the log has the source's error: {log}");
    hides("the log", &log);
}

#[test]
fn no_command_shows_the_keys_of_an_rpc_url() {
    let Some((market, proxy)) = market() else { return };
    let printed = market.server_with(&[]).args(["--print-config"]).run();
    assert!(printed.stdout.contains(&format!("http://{}/…", proxy.address())), "{printed:?}");
    hides_all("--print-config", &printed);
    let file = market.site.path("metering.toml");
    let list = ["payments", "list", "--config", file.to_str().unwrap(), "--from-block", "0"];
    assert_eq!(market.site.admin(&list).code, Some(0));
    for fault in [Fault::RpcError(-32_000, COMPLAINT), Fault::WrongChainId(1)] {
        proxy.set(fault.clone());
        let listed = market.site.admin(&list);
        assert_eq!(listed.code, Some(1), "{fault:?}: {listed:?}");
        hides_all("payments list", &listed);
    }
    let ran = market.server_with(&[]).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    hides_all("a start that fails", &ran);
    // Configuration errors do not repeat the value.
    let [user, password, path, query] = SECRETS;
    let url = format!("http://{user}:{password}@rpc.example/{path}?apikey={query}");
    let table = [
        ("RPC_URLS", format!("{url},{url}"), "rpc_urls"),
        ("RPC_URLS", url.replace("http:", "wss:"), "rpc_urls"),
        ("PUBLIC_RPC_URL", url.clone(), "public_rpc_url"),
        ("RPC_URL", url.clone(), "rpc_url"),
    ];
    for (key, value, named) in table {
        let ran = market.server_with(&[(&format!("METERING_CHAINS__DEVNET__{key}"), &value)]).run();
        assert_eq!(ran.code, Some(1), "{key}: {ran:?}");
        assert!(ran.stderr.contains(named), "{key}: {ran:?}");
        hides_all(key, &ran);
    }
    let file = market.site.write("broken.toml", &format!("[chains.devnet]\nrpc_urls = ['{url}'\nrecipient = 5\n"));
    let file = file.to_str().unwrap();
    hides_all("a file that cannot be read", &market.site.server().args(["--config", file]).run());
    hides_all("a file that cannot be read", &market.site.admin(&["payments", "list", "--config", file]));
}
