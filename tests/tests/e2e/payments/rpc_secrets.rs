//! RPC URLs belong to the operator: secrets in them never leave the server, in any fault.

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::{Fault, Garbage};
use metering_tests::command::ProgramOutput;

use crate::support::shop::{Kind, Shop};

/// Providers put their customers' keys into any part of a URL.
const SECRETS: [&str; 4] = ["operator-name", "operator-password", "path-key-5f2c81", "query-key-90ab17"];

/// A provider's error message that repeats the keys from the URL.
const ERROR_WITH_SECRETS: &str = "project path-key-5f2c81 (query-key-90ab17) of operator-name is over its limit";

#[track_caller]
fn assert_hidden(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

#[track_caller]
fn assert_output_hidden(what: &str, output: &ProgramOutput) {
    assert_hidden(what, &output.stdout);
    assert_hidden(what, &output.stderr);
}

/// A shop whose only source has a URL with a secret in each part.
fn shop() -> Option<(Shop, Proxy)> {
    let chain = Chain::start()?;
    let proxy = Proxy::start(&chain);
    let [user, password, path, query] = SECRETS;
    let url = format!("'http://{user}:{password}@{}/v3/{path}?apikey={query}'", proxy.address());
    let shop = Shop::on(chain, &url, "1", "attempts = 2\nrequest_timeout = '2s'");
    Some((shop, proxy))
}

#[test]
fn responses_and_logs_never_show_rpc_url_secrets() {
    let Some((mut shop, proxy)) = shop() else { return };
    shop.restart_with(&[("METERING_LOG__FILTER", "trace"), ("METERING_PAYMENTS__CLAIM_WAIT", "100ms")]);
    let known = shop.site.account("1").api_key;
    let faults = [
        Fault::RpcError(-32_005, ERROR_WITH_SECRETS),
        Fault::RpcError(-32_000, ERROR_WITH_SECRETS),
        Fault::HttpError(401),
        Fault::Garbage(Garbage::Text),
        Fault::Timeout,
        Fault::WrongChainId(1),
        Fault::NullReceipts,
        Fault::PassThrough,
    ];
    for fault in faults {
        proxy.set(Fault::PassThrough);
        let customer = shop.customer();
        let offered = shop.request_quote(Kind::Token, &customer.address()).expect(201);
        let quote = shop.quote(Kind::Token, &customer.address());
        let hash = shop.pay(Kind::Token, &customer, quote.units);
        let _ = shop.chain.mined(&hash);
        proxy.set(fault.clone());
        let claimed = shop.claim(&quote, &hash);
        assert_eq!(claimed.status == 200, fault == Fault::PassThrough, "{fault:?}: {}", claimed.text());
        let topped_up = shop.top_up(&known, Kind::Token, &hash, None);
        for response in [offered, claimed, topped_up] {
            assert_hidden(&format!("{fault:?}"), &format!("{:?} {}", response.headers, response.text()));
        }
    }
    proxy.set(Fault::HttpError(503));
    for path in ["/credits/plans", "/ready", "/metrics", "/openapi.json", "/health"] {
        let response = shop.client().get(path);
        assert_hidden(path, &format!("{:?} {}", response.headers, response.text()));
    }
    let log = shop.server.log();
    assert!(log.contains(&proxy.address().to_string()), "the log names the source: {log}");
    assert!(log.contains("is over its limit"), "the log has the source's error: {log}");
    assert_hidden("the log", &log);
}

#[test]
fn commands_never_show_rpc_url_secrets() {
    let Some((shop, proxy)) = shop() else { return };
    let printed = shop.server_with(&[]).args(["--print-config"]).run();
    assert!(printed.stdout.contains(&format!("http://{}/…", proxy.address())), "{printed:?}");
    assert_output_hidden("--print-config", &printed);
    let file = shop.site.path("metering.toml");
    let list = ["payments", "list", "--config", file.to_str().unwrap(), "--from-block", "0"];
    assert_eq!(shop.site.admin(&list).code, Some(0));
    for fault in [Fault::RpcError(-32_000, ERROR_WITH_SECRETS), Fault::WrongChainId(1)] {
        proxy.set(fault.clone());
        let listed = shop.site.admin(&list);
        assert_eq!(listed.code, Some(1), "{fault:?}: {listed:?}");
        assert_output_hidden("payments list", &listed);
    }
    let output = shop.server_with(&[]).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_output_hidden("a start that fails", &output);
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
        let output = shop.server_with(&[(&format!("METERING_CHAINS__DEVNET__{key}"), &value)]).run();
        assert_eq!(output.code, Some(1), "{key}: {output:?}");
        assert!(output.stderr.contains(named), "{key}: {output:?}");
        assert_output_hidden(key, &output);
    }
    let file = shop.site.write("broken.toml", &format!("[chains.devnet]\nrpc_urls = ['{url}'\nrecipient = 5\n"));
    let file = file.to_str().unwrap();
    assert_output_hidden("a file that cannot be read", &shop.site.server().args(["--config", file]).run());
    assert_output_hidden("a file that cannot be read", &shop.site.admin(&["payments", "list", "--config", file]));
}
