//! Endpoints for operators and their tools, and which databases the server accepts.

use std::net::TcpListener;

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::site::Site;

use crate::support::wire::BASE;

#[test]
fn health_readiness_and_metrics_are_served() {
    let site = Site::new();
    let (account, poor) = (site.account("1"), site.account("0"));
    let server = site.server().start();
    for path in ["/health", "/ready"] {
        let response = server.client().get(path).expect(200);
        assert_eq!(response.json()["status"], "ok");
    }
    for _ in 0..3 {
        let _ = server.client_with(&account.api_key).get(BASE).expect(200);
    }
    let _ = server.client_with(&poor.api_key).get(BASE).expect(402);
    let stream = server.client_with(&account.api_key).open("/mpp/stream/allTrades");
    let response = server.client().get("/metrics").expect(200);
    assert!(response.header("content-type").unwrap().starts_with("text/plain"));
    let text = response.text();
    for line in [
        "metering_charges_total{outcome=\"accepted\"} 4",
        "metering_charges_total{outcome=\"insufficient_credits\"} 1",
        "metering_refunds_total 0",
        "metering_streams_open 1",
        "metering_queue_length 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    drop(stream);
}

#[test]
fn metrics_can_have_their_own_address() {
    let site = Site::new();
    let free = free_address();
    let server = site.server().set("METERING_ADMIN_LISTEN", &free.to_string()).start();
    let _ = server.client().get("/metrics").expect(404);
    let admin = Client::new(free);
    assert!(admin.get("/metrics").expect(200).text().contains("metering_charges_total"));
    let _ = admin.send("POST", "/metrics", None).expect(405);
    for path in ["/health", "/credits/plans", "/mpp/ethPrice", "/internal/billing/lookup"] {
        let _ = admin.get(path).expect(404);
    }
}

#[test]
fn openapi_document_describes_every_endpoint() {
    let site = Site::new();
    let (account, other) = (site.account("10"), site.account("10"));
    let server = site.server().set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery").start();
    let (client, rotating) = (server.client_with(&account.api_key), server.client_with(&other.api_key));
    let response = server.client().get("/openapi.json").expect(200);
    assert_eq!(response.header("content-type"), Some("application/json"));
    let document = response.json();
    let paths = document["paths"].as_object().unwrap();
    for own in ["/credits/plans", "/credits/balance", "/credits/usage/summary", "/internal/billing/deduct", "/ready"] {
        assert!(paths.contains_key(own), "{own}");
    }
    let mut metered = 0;
    for (path, item) in paths {
        let target: Vec<_> = path.split('/').map(|piece| if piece.starts_with('{') { "1" } else { piece }).collect();
        let target = target.join("/");
        for (method, operation) in item.as_object().unwrap() {
            // This one replaces the key that it is called with.
            let caller = if path == "/keys/current/rotate" { &rotating } else { &client };
            let mut response = caller.open_with(&method.to_uppercase(), &target);
            let status = response.status.to_string();
            let described = operation["responses"].as_object().unwrap();
            // The sample feed's own 404 for an unknown address is not described.
            let upstreams_own = path.starts_with("/mpp/") && status == "404";
            assert!(described.contains_key(&status) || upstreams_own, "{method} {target}: {status}");
            metered += usize::from(response.header("x-bds-credit-charged").is_some());
            let _ = response.piece();
        }
    }
    assert_eq!(metered, 22, "every route of the default catalogue was charged");
}

#[test]
fn port_in_use_is_a_clear_error() {
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = site.server().set("METERING_ADMIN_LISTEN", &address).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains(&address) && output.stderr.contains("admin_listen"), "{output:?}");
    let output = Site::new().server_at(&address).run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains(&format!("cannot listen on {address}")), "{output:?}");
    assert!(output.stderr.contains("in use"), "{output:?}");
    assert!(!output.stderr.contains("panicked"), "{output:?}");
}

#[test]
fn newer_database_is_refused_and_left_unchanged() {
    let site = Site::verified();
    let _ = site.account("1");
    let set = |version: i64| {
        let database = rusqlite::Connection::open(site.database()).unwrap();
        database.pragma_update(None, "user_version", version).unwrap();
    };
    let database = rusqlite::Connection::open(site.database()).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    drop(database);
    set(99);
    let output = site.server().run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(output.stderr.contains("99") && output.stderr.contains("newer"), "{output:?}");
    let output = site.admin(&["account", "list"]);
    assert!(output.code == Some(1) && output.stderr.contains("newer"), "{output:?}");
    set(version);
    let server = site.server().start();
    let _ = server.client().get("/ready").expect(200);
}

#[test]
fn non_database_file_is_refused_and_left_unchanged() {
    let site = Site::new();
    std::fs::create_dir(site.data()).unwrap();
    let text = "this is not a database, and must not be overwritten\n".repeat(100);
    std::fs::write(site.database(), &text).unwrap();
    let output = site.server().run();
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(!output.stderr.contains("panicked"), "{output:?}");
    assert_eq!(std::fs::read_to_string(site.database()).unwrap(), text);

    std::fs::remove_file(site.database()).unwrap();
    rusqlite::Connection::open(site.database()).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let output = site.server().run();
    assert!(output.code == Some(1) && output.stderr.contains("another program"), "{output:?}");
}

#[cfg(unix)]
#[test]
fn other_users_cannot_read_the_data() {
    use std::os::unix::fs::PermissionsExt;
    let site = Site::new();
    let server = site.server().start();
    let _ = server.client().get("/ready").expect(200);
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(site.data()), 0o700);
    for file in std::fs::read_dir(site.data()).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(path.clone()), 0o600, "{}", path.display());
    }
}

#[test]
fn sample_feed_is_marked_as_sample() {
    let (_site, account, server) = Site::serving("1");
    server.expect_log("metering-server");
    let response = server.client_with(&account.api_key).get(BASE).expect(200);
    assert_eq!(response.header("x-sample-data"), Some("true"));
    assert_eq!(response.json()["sample"], true);
    let not_yet = server.client_with(&account.api_key).get(&format!("{BASE}/99999999999")).expect(404);
    assert_eq!(not_yet.json()["sample"], true);
    server.expect_log("SAMPLE DATA");
}
