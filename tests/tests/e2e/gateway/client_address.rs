//! Proxies in front of the server: which forwarded client addresses are trusted.

use std::ffi::OsStr;

use metering_tests::ports::free_address;
use metering_tests::site::Site;
use serde_json::Value;

use crate::support::upstream::{Upstream, catalogue};

/// The `X-Forwarded-For` that the upstream gets, when a client at 127.0.0.1 sends these lines of it.
fn forwarded_for(trusted_proxies: Option<&str>, lines: &[&str]) -> Vec<String> {
    let (site, upstream) = (Site::new(), Upstream::start());
    let account = site.account("1");
    let mut setup = site.server().args(["--upstream", &upstream.url()]).args(catalogue(&site));
    if let Some(proxies) = trusted_proxies {
        setup = setup.set("METERING_HTTP__TRUSTED_PROXIES", proxies);
    }
    let server = setup.start();
    let client = lines
        .iter()
        .fold(server.client_with(&account.api_key), |client, line| client.with_header("X-Forwarded-For", line));
    let _ = client.get("/api/echo/word").expect(200);
    upstream.last().headers.get("x-forwarded-for").cloned().unwrap_or_default()
}

#[test]
fn only_the_list_of_a_trusted_proxy_reaches_the_upstream() {
    // trusted proxies, lines sent, what the upstream gets
    let table: [(Option<&str>, &[&str], &str); 3] = [
        (None, &["6.6.6.6"], "127.0.0.1"),
        (Some("127.0.0.1"), &["6.6.6.6, 1.2.3.4"], "6.6.6.6, 1.2.3.4, 127.0.0.1"),
        (Some("10.0.0.0/8, 127.0.0.0/8"), &["6.6.6.6", "1.2.3.4"], "6.6.6.6, 1.2.3.4, 127.0.0.1"),
    ];
    for (trusted_proxies, lines, expected) in table {
        assert_eq!(forwarded_for(trusted_proxies, lines), [expected], "{trusted_proxies:?} {lines:?}");
    }
}

#[test]
fn doctor_sees_what_the_proxy_really_sends() {
    let site = Site::new();
    let admin = free_address();
    let examined = |trusted: &str, lines: &[Option<&str>]| {
        let settings = format!("admin_listen = '{admin}'\n[http]\ntrusted_proxies = [{trusted}]\n");
        let file = site.write("metering.toml", &settings);
        let server = site.server().args([OsStr::new("--config"), file.as_os_str()]).start();
        for line in lines {
            let client = line.iter().fold(server.client(), |client, line| client.with_header("X-Forwarded-For", line));
            let _ = client.get("/credits/plans").expect(200);
        }
        // A balancer's check has no client, and counts for nothing.
        let _ = server.client().get("/ready").expect(200);
        let output = site.admin(&["--config", file.to_str().unwrap(), "doctor", "--json"]);
        let document: Value = serde_json::from_str(&output.stdout).unwrap();
        let findings = document["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "proxies");
        let text = |finding: &Value| format!("{}: {}", finding["state"], finding["found"]);
        // The first finding is about the configuration.
        (findings.map(text).skip(1).collect::<Vec<_>>().join("\n"), server.log())
    };
    let (found, _) = examined("'127.0.0.1'", &[None, None]);
    assert!(found.starts_with("\"warning\"") && found.contains("2 requests from trusted proxies have no"), "{found}");
    let (found, log) = examined("'127.0.0.1'", &[Some("192.0.2.1"), None, Some("192.0.2.1")]);
    assert!(found.starts_with("\"ok\"") && found.contains("2 requests since"), "{found}");
    assert!(!log.contains("X-Forwarded-For"), "{log}");
    let (found, log) = examined("'10.0.0.9'", &[Some("192.0.2.1"), Some("192.0.2.1"), None]);
    assert!(found.starts_with("\"warning\"") && found.contains("2 requests with X-Forwarded-For"), "{found}");
    assert_eq!(log.matches("X-Forwarded-For came from an address").count(), 1, "{log}");
    assert_eq!(examined("", &[None]).0, "");
}
