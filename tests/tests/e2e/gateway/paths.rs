//! Path tricks: every spelling of a metered route except the normal form is refused, and costs nothing.

use metering_tests::client::exchange;
use metering_tests::response::Response;
use metering_tests::site::Site;

use crate::support::upstream::served;
use crate::support::wire::balance;

/// Request targets, and the accepted statuses of the responses.
const TARGETS: &[(&[u8], &[u16])] = &[
    (b"/api/../credits/balance", &[400]),
    (b"/api/echo/..", &[400]),
    (b"/api/echo/.", &[400]),
    (b"/api/./echo", &[400]),
    (b"/api/%2e%2e/credits/balance", &[400]),
    (b"/api/echo/%2E%2E", &[400]),
    (b"/api/echo/.%2e", &[400]),
    (b"/api/echo%2fword", &[400]),
    (b"/api%2fecho", &[404]),
    (b"/api/echo/a%2Fb", &[400]),
    (b"/api/echo/a%5cb", &[400]),
    (b"/api/echo/a\\b", &[400]),
    (b"/api/echo/%00", &[400]),
    (b"/api/echo/a%0d%0ab", &[400]),
    (b"/api/echo/%7f", &[400]),
    (b"/api/echo/%", &[400]),
    (b"/api/echo/%4", &[400]),
    (b"/api/echo/%zz", &[400]),
    (b"/api/echo/%ff", &[400]),
    (b"/api/echo/%c0%ae%c0%ae", &[400]),
    (b"/api/echo/%252e%252e", &[400]),
    (b"/api/echo/x%252f..%252f..%252fstatus", &[400]),
    (b"/api/echo/%252525252525252541", &[400]),
    (b"/api/echo/a%2541", &[200]),
    (b"/api/echo/a;b=c", &[400]),
    (b"/api/echo;v=1/word", &[400]),
    (b"/api/echo/a%3Bb", &[200]),
    (b"/api/echo/\xc3\xa9", &[400]),
    (b"/api/echo/\xff\xfe", &[400]),
    (b"/api/echo/<a>", &[400]),
    (b"/api/echo/a|b", &[400]),
    (b"/api/echo/\"a\"", &[400]),
    (b"//api/echo/word", &[400, 404]),
    (b"/api//echo/word", &[404]),
    (b"/api/echo//word", &[404]),
    (b"/api/echo/", &[400, 404]),
    (b"/api/echo/word/", &[404]),
    (b"/API/echo/word", &[404]),
    (b"/api/Echo/word", &[404]),
    (b"/api", &[404]),
    (b"/api/", &[404]),
    (b"/", &[302]),
    (b"api/echo/word", &[400]),
    (b"*", &[404]),
    (b"", &[400]),
    (b"http://other.example/api/../credits/plans", &[400]),
    (b"ftp://other.example/api/nothing", &[400, 404]),
    (b"/api/echo?q", &[400]),
    (b"/api/echo?q=%", &[400]),
    (b"/api/echo?q=%ff", &[400]),
    (b"/api/echo?q=%00", &[400]),
    (b"/api/echo?q=1&q=2", &[400]),
    (b"/api/echo?q=1&%71=2", &[400]),
    (b"/api/echo?Q=1", &[400]),
    (b"/api/echo?q[]=1", &[400]),
    (b"/api/echo?q=1;r=2", &[200]),
    (b"/api/echo?r=2", &[400]),
    (b"/api/echo?=1", &[400]),
    (b"/api/echo/word?q=1", &[400]),
    (b"/api/status/1e2", &[400]),
    (b"/api/status/+200", &[400]),
    (b"/api/status/0200", &[400]),
    (b"/api/status/-", &[400]),
    (b"/api/status/200.0", &[400]),
    (b"/api/status/99999999999999999999", &[400]),
    (b"/api/status/%32%30%30", &[200]),
    (b"/api/status/\xd9\xa2\xd9\xa0\xd9\xa0", &[400]),
    (b"/api/echo/word#fragment", &[200, 400]),
];

#[test]
fn ambiguous_target_is_refused() {
    let (_site, upstream, account, server) = served("1");
    let client = server.client_with(&account.api_key);
    let mut charged = 0;
    for (target, statuses) in TARGETS {
        let target_text = String::from_utf8_lossy(target);
        let head =
            format!(" HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n", account.api_key);
        let bytes = [b"GET ", *target, head.as_bytes()].concat();
        let response = Response::parse(&exchange(server.address(), &bytes).unwrap());
        let response = response.unwrap_or_else(|error| panic!("{target_text}: {error}"));
        assert!(statuses.contains(&response.status), "{target_text}: {} {}", response.status, response.text());
        charged += i64::from(response.status == 200);
    }
    assert_eq!(balance(&client), crate::support::wire::amount((7_200 - charged) * 1_000_000));
    assert_eq!(i64::try_from(upstream.seen().len()).unwrap(), charged);
    for seen in upstream.seen() {
        assert!(!seen.target.contains("..") && seen.target.starts_with("/api/"), "{}", seen.target);
    }
}

#[test]
fn absolute_target_is_the_same_route() {
    let (_site, upstream, account, server) = served("1");
    let request = format!(
        "GET http://169.254.1.1/api/echo/word HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
        account.api_key
    );
    let response = Response::parse(&exchange(server.address(), request.as_bytes()).unwrap()).unwrap();
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(upstream.last().target, "/api/echo/word");
}

#[test]
fn own_paths_have_one_spelling() {
    let (_site, account, server) = Site::serving("1");
    let client = server.client_with(&account.api_key);
    let table = [
        ("GET", "/credits", 404),
        ("GET", "/credits/", 404),
        ("GET", "/credits/balance/x", 404),
        ("GET", "/credits//balance", 404),
        ("GET", "/credits/%62alance", 404),
        ("GET", "/credits/../credits/balance", 404),
        ("GET", "/Credits/Balance", 404),
        ("GET", "/admin", 404),
        ("GET", "/mpp", 404),
        ("GET", "/mpp/snapshot/allTrades?from_epoch=1", 400),
        ("POST", "/credits/balance", 405),
        ("DELETE", "/credits/usage", 405),
        ("PUT", "/credits/plans", 405),
        ("POST", "/mpp/ethPrice", 405),
        ("PATCH", "/mpp/ethPrice/1", 405),
        ("OPTIONS", "/mpp/ethPrice", 405),
        ("TRACE", "/mpp/ethPrice", 405),
        ("NONSENSE", "/mpp/ethPrice", 405),
        ("get", "/mpp/ethPrice", 405),
        ("PURGE", "/health", 405),
    ];
    for (method, path, status) in table {
        let response = client.send(method, path, None);
        assert_eq!(response.status, status, "{method} {path}: {}", response.text());
        let error = response.error();
        match status {
            405 => {
                assert_eq!(error, "method_not_allowed", "{method} {path}");
                // A metered route takes the methods of its catalogue; for other paths, HEAD works like GET.
                let allowed = if path.starts_with("/mpp") { "GET" } else { "GET, HEAD" };
                assert_eq!(response.header("allow"), Some(allowed), "{method} {path}");
            }
            404 => assert!(["not_found", "unknown_route"].contains(&error.as_str()), "{path}: {error}"),
            _ => assert_eq!(error, "invalid_parameter", "{path}"),
        }
        assert!(response.json()["message"].as_str().is_some_and(|message| !message.is_empty()));
    }
    assert_eq!(balance(&client), "1");
}
