//! The upstream gets the public address of the gateway, and its own links lead there.

use metering_tests::server::ServerSetup;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::script::{Script, with_length};
use crate::support::upstream::{Upstream, catalogue};

const PUBLIC: (&str, &str) = ("METERING_PUBLIC_URL", "https://api.example");
const TRUSTED: (&str, &str) = ("METERING_HTTP__TRUSTED_PROXIES", "127.0.0.1");
const PRESERVED: (&str, &str) = ("METERING_GATEWAY__PRESERVE_HOST", "true");

fn with(setup: ServerSetup, settings: &[(&str, &str)]) -> ServerSetup {
    settings.iter().fold(setup, |setup, (name, value)| setup.set(name, value))
}

#[test]
fn upstream_is_told_the_public_address() {
    let by_proxy = [
        ("X-Forwarded-For", "1.2.3.4"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "shop.example"),
        ("X-Forwarded-Port", "8443"),
    ];
    // settings, headers sent, scheme, host, port and `Forwarded` that the upstream gets, and `Host` if it differs
    type Row<'r> = (&'r [(&'r str, &'r str)], &'r [(&'r str, &'r str)], [&'r str; 4], Option<&'r str>);
    let table: [Row<'_>; 4] = [
        (
            &[PUBLIC, PRESERVED],
            &by_proxy,
            ["https", "api.example", "443", "for=127.0.0.1;proto=https;host=\"api.example\""],
            Some("api.example"),
        ),
        (
            &[PUBLIC, TRUSTED],
            &by_proxy,
            ["https", "shop.example", "8443", "for=1.2.3.4;proto=https;host=\"shop.example:8443\", for=127.0.0.1"],
            None,
        ),
        (
            &[TRUSTED, PRESERVED],
            &[("Forwarded", "for=1.2.3.4;proto=https;host=shop.example")],
            ["https", "shop.example", "443", "for=1.2.3.4;proto=https;host=shop.example, for=127.0.0.1"],
            Some("shop.example"),
        ),
        (
            &[PUBLIC, TRUSTED],
            &[],
            ["https", "api.example", "443", "for=127.0.0.1;proto=https;host=\"api.example\""],
            None,
        ),
    ];
    for (settings, sent, announced, host) in table {
        let (site, upstream) = (Site::new(), Upstream::start());
        let account = site.account("1");
        let setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
        let server = with(setup, settings).start();
        let client = server.client_with(&account.api_key);
        let client = sent.iter().fold(client, |client, (name, value)| client.with_header(name, value));
        let _ = client.get("/api/echo/word").expect(200);
        let seen = upstream.last();
        let got = ["x-forwarded-proto", "x-forwarded-host", "x-forwarded-port", "forwarded"]
            .map(|name| seen.headers.get(name).map(|values| values.join("|")).unwrap_or_default());
        assert_eq!(got, announced, "{settings:?} {sent:?}");
        let own = upstream.url();
        let host = host.unwrap_or_else(|| own.trim_start_matches("http://"));
        assert_eq!(seen.headers["host"], [host], "{settings:?} {sent:?}");
    }
}

#[test]
fn redirects_to_the_upstream_lead_to_the_gateway() {
    let (site, upstream) = (Site::new(), Script::start());
    let account = site.account("1");
    let route = json!({"path": "/moved", "method": "POST", "metered": true});
    let file = site.write("moved.json", &json!({"market": "M", "version": 1, "endpoints": [route]}).to_string());
    let base = format!("{}/base", upstream.url());
    let setup = site.server().args(["--upstream", &base, "--catalogue"]).args([file]);
    let server = with(setup, &[PUBLIC]).start();
    let client = server.client_with(&account.api_key);
    let moved = |location: &str| -> Value {
        let headers = format!("Location: {location}\r\nContent-Location: {location}\r\n");
        json!({"steps": [with_length("307 Temporary Redirect", &headers, "")]})
    };
    // where the upstream sends the client, where it goes
    let own = format!("{base}/a?b=c");
    let table = [
        (own.as_str(), "https://api.example/a?b=c"),
        ("/base/a", "https://api.example/a"),
        ("https://elsewhere.example/base/a", "https://elsewhere.example/base/a"),
    ];
    for (location, expected) in table {
        let response = client.post("/moved", &moved(location)).expect(307);
        let got = (response.header("location"), response.header("content-location"));
        assert_eq!(got, (Some(expected), Some(expected)), "{location}");
    }
}
