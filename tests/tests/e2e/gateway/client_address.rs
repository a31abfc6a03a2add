//! Proxies in front of the server: which forwarded client addresses are trusted.

use std::ffi::OsStr;

use metering_tests::site::Site;

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
    let table: [(Option<&str>, &[&str], &str); 5] = [
        (None, &["6.6.6.6"], "127.0.0.1"),
        (Some("10.0.0.0/8, ::1"), &["6.6.6.6"], "127.0.0.1"),
        (Some("127.0.0.1"), &[], "127.0.0.1"),
        (Some("127.0.0.1"), &["6.6.6.6, 1.2.3.4"], "6.6.6.6, 1.2.3.4, 127.0.0.1"),
        (Some("10.0.0.0/8, 127.0.0.0/8"), &["6.6.6.6", "1.2.3.4"], "6.6.6.6, 1.2.3.4, 127.0.0.1"),
    ];
    for (trusted_proxies, lines, expected) in table {
        assert_eq!(forwarded_for(trusted_proxies, lines), [expected], "{trusted_proxies:?} {lines:?}");
    }
}

#[test]
fn invalid_proxies_and_limits_stop_startup_and_are_named() {
    let site = Site::new();
    let file = site.write("metering.toml", "[http]\ntrusted_proxies = ['127.0.0.1', 'localhost']\n");
    let output = site.server().args([OsStr::new("--config"), file.as_os_str()]).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("http.trusted_proxies[1]") && output.stderr.contains("localhost"), "{output:?}");
    // variable, its value, the key
    let table = [
        ("METERING_HTTP__TRUSTED_PROXIES", "10.0.0.0/33", "http.trusted_proxies"),
        ("METERING_LIMITS__SIGNUP_PER_IP", "30", "limits.signup_per_ip"),
        ("METERING_LIMITS__PER_WALLET", "30/fortnight", "limits.per_wallet"),
    ];
    for (variable, value, key) in table {
        let output = site.server().set(variable, value).run();
        assert_eq!(output.code, Some(1), "{variable}: {output:?}");
        assert!(output.stderr.contains(key) && output.stderr.contains(value), "{variable}: {output:?}");
    }
}
