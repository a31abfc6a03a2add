//! Which requests go on to the next upstream, and how that counts against the one that failed.

use http::{Method, Request};
use http_body_util::BodyExt;
use metering_core::{Catalogue, SystemRandomness};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::http::into_response;

const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 4\r\n\r\nbusy";
const FAULT: &str = "HTTP/1.1 500 Internal Server Error\r\nconnection: close\r\ncontent-length: 5\r\n\r\nfault";
/// Breaks off before the first byte of its body.
const BROKEN: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";
/// Breaks off after it.
const PART: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npart";
const NOTHING: &str = "";

/// Starts a server that responds to the first request of each connection with this text, and closes it. Returns its URL.
async fn server(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                if stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {
                    let _ = stream.write_all(response.as_bytes()).await;
                }
                // Closing it with unread data would reset it.
                let _ = stream.shutdown().await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    url
}

/// A URL at which nothing listens.
async fn refusing() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

fn upstreams(urls: &[(&str, String)], more: &str, before: &NamedUpstreams) -> NamedUpstreams {
    let tables = urls.iter().map(|(name, url)| format!("[[upstreams]]\nname = '{name}'\nurl = '{url}'\n{more}\n"));
    let config: GatewayConfig = toml::from_str(&tables.collect::<String>()).unwrap();
    NamedUpstreams::new(&config, None, NonZeroUsize::MIN, before).unwrap()
}

fn route(fields: &str) -> RouteUpstreams {
    let text = format!(
        r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/x", "method": "POST", "metered": true, {fields}}}]}}"#
    );
    Catalogue::from_json(&text).unwrap().routes()[0].upstreams.clone().unwrap()
}

/// Who served it, and the body; or the error.
async fn call(
    upstreams: &NamedUpstreams,
    route: &RouteUpstreams,
    method: &Method,
) -> Result<(String, String), ErrorCode> {
    let (head, ()) = Request::builder().method(method).uri("/x").body(()).unwrap().into_parts();
    let response = upstreams.serve(route, &head, Bytes::from("body"), false).await.map_err(|problem| problem.code())?;
    let name = response.headers()[UPSTREAM_HEADER].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.map_err(|_| ErrorCode::InternalError)?;
    Ok((name, String::from_utf8(body.to_bytes().to_vec()).unwrap()))
}

fn served(name: &str, body: &str) -> Result<(String, String), ErrorCode> {
    Ok((name.to_owned(), body.to_owned()))
}

#[tokio::test]
async fn a_request_goes_on_if_it_was_not_sent_or_may_be_sent_twice() {
    let refused = refusing().await;
    // What the first upstream does, and whether a GET, a POST, and a POST of a route with retry go on to the next one.
    let table = [
        (refused, [true, true, true]),
        (server(NOTHING).await, [true, false, true]),
        (server(BUSY).await, [true, false, true]),
        (server("HTTP/9.9 huh\r\n\r\n").await, [true, false, true]),
        (server(BROKEN).await, [true, false, true]),
        (server(FAULT).await, [false, false, false]),
        (server(PART).await, [false, false, false]),
    ];
    let second = server(OK).await;
    let plain = route(r#""upstream": ["first", "second"]"#);
    let retry = route(r#""upstream": ["first", "second"], "retry": true"#);
    for (number, (first, expected)) in table.into_iter().enumerate() {
        let urls = [("first", first), ("second", second.clone())];
        let upstreams = upstreams(&urls, "eject_after = 0", &NamedUpstreams::default());
        let calls = [(Method::GET, &plain), (Method::POST, &plain), (Method::POST, &retry)];
        for ((method, route), goes_on) in calls.into_iter().zip(expected) {
            let got = call(&upstreams, route, &method).await;
            assert_eq!(got == served("second", "ok"), goes_on, "{number} {method} {route:?}: {got:?}");
        }
    }
}

#[tokio::test]
async fn statuses_that_the_route_lists_go_on_and_are_passed_on_if_no_other_serves() {
    let limited = "HTTP/1.1 429 Too Many Requests\r\nconnection: close\r\ncontent-length: 4\r\n\r\nmany";
    let listed = route(r#""upstream": ["first", "second"], "retry": [429]"#);
    let plain = route(r#""upstream": ["first", "second"], "retry": true"#);
    // the second upstream, who serves a request of each route
    let table = [
        (server(OK).await, served("second", "ok"), served("first", "many")),
        (server(BUSY).await, served("first", "many"), served("first", "many")),
        (server(limited).await, served("first", "many"), served("first", "many")),
        (server(FAULT).await, served("second", "fault"), served("first", "many")),
    ];
    for (number, (second, of_listed, of_plain)) in table.into_iter().enumerate() {
        let urls = [("first", server(limited).await), ("second", second)];
        let upstreams = upstreams(&urls, "", &NamedUpstreams::default());
        assert_eq!(call(&upstreams, &listed, &Method::POST).await, of_listed, "{number}");
        assert_eq!(call(&upstreams, &plain, &Method::POST).await, of_plain, "{number}");
    }
}

#[tokio::test]
async fn a_body_that_has_begun_is_never_replaced() {
    let urls = [("first", server(PART).await), ("second", server(OK).await)];
    let upstreams = upstreams(&urls, "", &NamedUpstreams::default());
    let got = call(&upstreams, &route(r#""upstream": ["first", "second"], "retry": true"#), &Method::GET).await;
    assert_eq!(got, Err(ErrorCode::InternalError), "the body broke off at the client");
}

#[tokio::test]
async fn an_upstream_that_fails_often_is_tried_last() {
    let urls = [("first", server(BUSY).await), ("second", server(OK).await)];
    let upstreams = upstreams(&urls, "eject_after = 2", &NamedUpstreams::default());
    let (plain, alone) = (route(r#""upstream": ["first", "second"]"#), route(r#""upstream": "first""#));
    let states = || upstreams.states().into_iter().map(|state| state.is_ejected).collect::<Vec<_>>();
    for _ in 0..2 {
        assert_eq!(states(), [false, false]);
        assert_eq!(call(&upstreams, &plain, &Method::POST).await, Err(ErrorCode::UpstreamUnavailable));
    }
    assert_eq!(states(), [true, false]);
    assert_eq!(call(&upstreams, &plain, &Method::POST).await, served("second", "ok"));
    assert_eq!(call(&upstreams, &alone, &Method::POST).await, Err(ErrorCode::UpstreamUnavailable), "it has no other");
}

#[tokio::test]
async fn an_upstream_is_not_ejected_for_time_that_others_used_up() {
    // The system accepts its connections; no one responds.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = format!(
        "upstream_timeout = '50ms'\n[[upstreams]]\nname = 'silent'\nurl = 'http://{}'\neject_after = 1",
        silent.local_addr().unwrap()
    );
    let config: GatewayConfig = toml::from_str(&config).unwrap();
    let upstreams = NamedUpstreams::new(&config, None, NonZeroUsize::MIN, &NamedUpstreams::default()).unwrap();
    let (head, ()) = Request::get("/x").body(()).unwrap().into_parts();
    // the time that is left for it, whether it is ejected
    for (left, is_ejected) in [(1, false), (50, true)] {
        let left = Duration::from_millis(left);
        let unserved = upstreams.all[0].attempt(&head, Bytes::new(), false, left).await.unwrap_err();
        assert_eq!(unserved.problem.code(), ErrorCode::UpstreamTimeout);
        assert_eq!(upstreams.states()[0].is_ejected, is_ejected, "{left:?}");
    }
}

#[tokio::test]
async fn a_long_path_does_not_eject_an_upstream() {
    let url = format!("{}/{}", server(OK).await, "a".repeat(100));
    let upstreams = upstreams(&[("first", url)], "eject_after = 1", &NamedUpstreams::default());
    let path = format!("/{}", "b".repeat(65_500));
    let (head, ()) = Request::get(path).body(()).unwrap().into_parts();
    let problem = upstreams.serve(&route(r#""upstream": "first""#), &head, Bytes::new(), false).await.unwrap_err();
    assert_eq!(problem.code(), ErrorCode::UpstreamUnreachable);
    assert!(!upstreams.states()[0].is_ejected);
}

#[tokio::test]
async fn an_upstream_that_has_not_changed_stays_the_same() {
    let (busy, ok) = (server(BUSY).await, server(OK).await);
    let before =
        upstreams(&[("first", busy.clone()), ("second", ok.clone())], "eject_after = 1", &NamedUpstreams::default());
    let plain = route(r#""upstream": ["first", "second"]"#);
    assert_eq!(call(&before, &plain, &Method::GET).await, served("second", "ok"));
    let ejected = |upstreams: &NamedUpstreams| {
        upstreams.states().into_iter().map(|state| (state.name, state.is_ejected)).collect::<Vec<_>>()
    };
    let added = upstreams(&[("third", ok), ("first", busy.clone())], "eject_after = 1", &before);
    assert_eq!(ejected(&added), [("third".to_owned(), false), ("first".to_owned(), true)]);
    let changed = upstreams(&[("first", busy)], "eject_after = 2", &before);
    assert_eq!(ejected(&changed), [("first".to_owned(), false)]);
}

#[tokio::test]
async fn health_checks_take_an_upstream_out_and_back() {
    let urls = [("first", server(BUSY).await), ("second", server(OK).await)];
    let upstreams = upstreams(&urls, "health = '/health'\nhealth_interval = '1h'", &NamedUpstreams::default());
    let path = "/health".parse().unwrap();
    for upstream in &upstreams.all {
        for _ in 0..2 {
            upstream.check(&path, Duration::from_secs(5)).await;
        }
    }
    let healthy: Vec<_> = upstreams.states().into_iter().map(|state| state.is_healthy).collect();
    assert_eq!(healthy, [Some(false), Some(true)]);
    let plain = route(r#""upstream": ["first", "second"]"#);
    assert_eq!(call(&upstreams, &plain, &Method::POST).await, served("second", "ok"));
}

#[tokio::test]
async fn the_upstream_of_a_request_is_found_by_the_id_in_its_response() {
    let upstreams = upstreams(&[("first", server(OK).await)], "", &NamedUpstreams::default());
    for (header, name, expected) in [
        ("x-request-id", "first", Some("first")),
        ("request-id", "first", Some("first")),
        ("x-request-id", "other", None),
        ("x-other-id", "first", None),
    ] {
        let id = HoldId::generate(&SystemRandomness);
        let mut response = into_response(http::Response::new(Bytes::new()));
        response.headers_mut().insert(header, id.to_string().parse().unwrap());
        response.headers_mut().insert(UPSTREAM_HEADER, name.parse().unwrap());
        upstreams.note(&response);
        assert_eq!(upstreams.served(id), expected, "{header} {name}");
    }
}
