//! One of several RPC sources fails or lags: payments continue, and the operator sees which one it is.

use metering_tests::chain::Chain;
use metering_tests::chain::proxy::Proxy;
use metering_tests::chain::proxy::fault::Fault;
use serde_json::Value;

use crate::support::shop::Shop;
use crate::support::wait::until;
use crate::support::wire::BASE;

/// A shop that reads its chain at the node itself, and through a proxy. One of them is enough.
fn shop() -> Option<(Shop, Proxy)> {
    let chain = Chain::start()?;
    let proxy = Proxy::start(&chain);
    let urls = format!("'{}', '{}'", chain.url(), proxy.url());
    let shop = Shop::on(chain, &urls, "1", "watch = true\nattempts = 1\nrequest_timeout = '3s'");
    Some((shop, proxy))
}

fn of_source(shop: &Shop, metric: &str, source: u8) -> Option<u64> {
    shop.metric(&format!("{metric}{{chain_id=\"31337\",source=\"{source}\"}}"))
}

/// The doctor's findings about the chain's sources, as `(state, found)`.
fn examined(shop: &Shop) -> Vec<(String, String)> {
    let file = shop.site.path("metering.toml");
    let output = shop.site.admin(&["--config", file.to_str().unwrap(), "doctor", "--json"]);
    let document: Value = serde_json::from_str(&output.stdout).unwrap();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap().to_owned();
    let findings = document["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "chain");
    findings.map(|finding| (text(finding, "state"), text(finding, "found"))).collect()
}

#[test]
fn failing_source_is_shown_by_metrics_log_and_doctor() {
    let Some((shop, proxy)) = shop() else { return };
    until("both sources are up", || {
        [1, 2].map(|source| of_source(&shop, "metering_chain_source_block", source))
            == [Some(shop.chain.block_number()); 2]
    });
    assert_eq!([1, 2].map(|source| of_source(&shop, "metering_chain_source_up", source)), [Some(1); 2]);
    let states = |findings: &[(String, String)]| findings.iter().map(|(state, _)| state.clone()).collect::<Vec<_>>();
    assert_eq!(states(&examined(&shop)), ["ok", "ok"]);

    let host = proxy.address().to_string();
    for (fault, words) in [
        (Fault::HttpError(503), "HTTP status 503"),
        (Fault::WrongChainId(1), "chain 1"),
        (Fault::Timeout, "no response within 1 s of the others"),
    ] {
        proxy.set(fault.clone());
        until("the metric shows it", || of_source(&shop, "metering_chain_source_up", 2) == Some(0));
        assert_eq!(of_source(&shop, "metering_chain_source_up", 1), Some(1), "{fault:?}");
        assert_eq!(shop.client().get("/ready").status, 200, "{fault:?}");
        let findings = examined(&shop);
        // A failure is listed first; one source is enough.
        assert_eq!(states(&findings), ["warning", "ok"], "{findings:?}");
        assert!(findings[0].1.contains(&host), "{findings:?}");
        proxy.set(Fault::PassThrough);
        until("the metric shows that it works again", || of_source(&shop, "metering_chain_source_up", 2) == Some(1));
        if fault == Fault::HttpError(503) {
            let said = |text: &str| {
                let log = shop.server.log();
                log.lines().filter(|line| line.contains(text) && line.contains(&host)).count()
            };
            until("the log has it", || said("works again") > 0);
            assert_eq!((said("an RPC source fails"), said(words), said("works again")), (1, 1, 1));
        }
    }
}

#[test]
fn source_that_stands_still_is_shown_by_metrics_and_doctor() {
    let Some((shop, proxy)) = shop() else { return };
    proxy.set(Fault::Lag(5));
    shop.chain.increase_time(90);
    shop.chain.mine(5);
    let newest = shop.chain.block_number();
    until("the metrics show it", || {
        let blocks = [1, 2].map(|source| of_source(&shop, "metering_chain_source_block", source));
        blocks == [Some(newest), Some(newest - 5)]
    });
    assert_eq!(of_source(&shop, "metering_chain_source_up", 2), Some(1));
    let findings = examined(&shop);
    let lagging = findings.iter().find(|(_, found)| found.contains(&proxy.address().to_string())).unwrap();
    assert_eq!(lagging.0, "warning", "{findings:?}");
    assert!(lagging.1.contains("older than another source's"), "{findings:?}");
}

#[test]
fn outage_of_the_only_source_leaves_the_server_ready_to_charge() {
    let Some(chain) = Chain::start() else { return };
    let proxy = Proxy::start(&chain);
    let shop = Shop::on(chain, &format!("'{}'", proxy.url()), "1", "watch = true\nattempts = 1");
    let account = shop.site.account("1");
    proxy.set(Fault::HttpError(503));
    until("the outage is noticed", || {
        let ready = shop.client().get("/ready");
        ready.status == 503 && ready.error() == "chain_unreachable"
    });
    assert_eq!(shop.client().get("/ready?chains=check").status, 503);
    assert_eq!(shop.client().get("/ready?chains=ignore").status, 200);
    assert_eq!(shop.client().get("/ready?chains=perhaps").expect(400).error(), "validation_failed");
    assert_eq!(shop.server.client_with(&account.api_key).get(BASE).status, 200);
    // The watcher and the settlement try several times a second. Neither fills the log.
    let rounds = proxy.requests();
    until("it is tried again and again", || proxy.requests() > rounds + 20);
    let log = shop.server.log();
    for text in ["an RPC source fails", "could not watch the chain", "could not recheck"] {
        assert!(log.matches(text).count() <= 1, "{text}: {log}");
    }
    assert_eq!(log.matches("could not check a payment").count(), 0, "{log}");
}
