//! Endpoints for operators and their tools, and which databases the server accepts.

use std::net::TcpListener;

use metering_tests::client::Client;
use metering_tests::site::Site;

use crate::wire::BASE;

#[test]
fn health_readiness_and_figures_are_served() {
    let site = Site::new();
    let (account, poor) = (site.account("1"), site.account("0"));
    let server = site.server().start();
    for path in ["/health", "/ready"] {
        let answer = server.client().get(path).expect(200);
        assert_eq!(answer.json()["status"], "ok");
    }
    for _ in 0..3 {
        let _ = server.client_with(&account.api_key).get(BASE).expect(200);
    }
    let _ = server.client_with(&poor.api_key).get(BASE).expect(402);
    let stream = server.client_with(&account.api_key).open("/mpp/stream/allTrades");
    let answer = server.client().get("/metrics").expect(200);
    assert!(answer.header("content-type").unwrap().starts_with("text/plain"));
    let text = answer.text();
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
fn figures_have_an_address_of_their_own_where_one_is_configured() {
    let site = Site::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let server = site.server().set("METERING_ADMIN_LISTEN", &free.to_string()).start();
    let _ = server.client().get("/metrics").expect(404);
    let admin = Client::new(free);
    assert!(admin.get("/metrics").expect(200).text().contains("metering_charges_total"));
    let _ = admin.send("POST", "/metrics", None).expect(405);
    for path in ["/", "/health", "/credits/plans", "/mpp/ethPrice", "/internal/billing/lookup"] {
        let _ = admin.get(path).expect(404);
    }
}

#[test]
fn the_openapi_document_describes_what_is_served() {
    let site = Site::new();
    let account = site.account("10");
    let server = site.server().set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery").start();
    let client = server.client_with(&account.api_key);
    let answer = server.client().get("/openapi.json").expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.json();
    let paths = document["paths"].as_object().unwrap();
    for own in ["/credits/plans", "/credits/balance", "/credits/usage/summary", "/internal/billing/deduct", "/ready"] {
        assert!(paths.contains_key(own), "{own}");
    }
    let mut metered = 0;
    for (path, item) in paths {
        let target: Vec<_> = path.split('/').map(|piece| if piece.starts_with('{') { "1" } else { piece }).collect();
        let target = target.join("/");
        for (method, operation) in item.as_object().unwrap() {
            let mut answer = client.open_with(&method.to_uppercase(), &target);
            let status = answer.status.to_string();
            let described = operation["responses"].as_object().unwrap();
            // The sample feed's own 404 for an unknown address is not described.
            let upstreams_own = path.starts_with("/mpp/") && status == "404";
            assert!(described.contains_key(&status) || upstreams_own, "{method} {target}: {status}");
            metered += usize::from(answer.header("x-bds-credit-charged").is_some());
            let _ = answer.piece();
        }
    }
    assert_eq!(metered, 22, "every route of the default catalogue was charged");
}

#[test]
fn a_port_that_is_taken_is_a_clear_error() {
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ran = site.server().set("METERING_ADMIN_LISTEN", &address).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&address) && ran.stderr.contains("admin_listen"), "{ran:?}");
    let ran = Site::new().server_at(&address).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("cannot listen on {address}")), "{ran:?}");
    assert!(ran.stderr.contains("in use"), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn a_database_of_a_newer_version_is_refused_and_left_as_it_is() {
    let site = Site::new();
    let _ = site.account("1");
    let set = |version: i64| {
        let database = rusqlite::Connection::open(site.database()).unwrap();
        database.pragma_update(None, "user_version", version).unwrap();
    };
    let database = rusqlite::Connection::open(site.database()).unwrap();
    let version: i64 = database.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    drop(database);
    set(99);
    let ran = site.server().run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("99") && ran.stderr.contains("newer"), "{ran:?}");
    let ran = site.admin(&["account", "list"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("newer"), "{ran:?}");
    set(version);
    let server = site.server().start();
    let _ = server.client().get("/ready").expect(200);
    site.verify();
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    let site = Site::new();
    std::fs::create_dir(site.data()).unwrap();
    let text = "this is not a database, and must not be overwritten\n".repeat(100);
    std::fs::write(site.database(), &text).unwrap();
    let ran = site.server().run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
    assert_eq!(std::fs::read_to_string(site.database()).unwrap(), text);

    std::fs::remove_file(site.database()).unwrap();
    rusqlite::Connection::open(site.database()).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    let ran = site.server().run();
    assert!(ran.code == Some(1) && ran.stderr.contains("another program"), "{ran:?}");
}

#[cfg(unix)]
#[test]
fn nobody_else_may_read_the_data() {
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
fn the_sample_feed_says_what_it_is() {
    let site = Site::new();
    let account = site.account("1");
    let server = site.server().start();
    assert!(server.log().contains("metering-server"), "{}", server.log());
    let answer = server.client_with(&account.api_key).get(BASE).expect(200);
    assert_eq!(answer.header("x-sample-data"), Some("true"));
    assert_eq!(answer.json()["sample"], true);
    let not_yet = server.client_with(&account.api_key).get(&format!("{BASE}/99999999999")).expect(404);
    assert_eq!(not_yet.json()["sample"], true);
    let mut log = server.log();
    let begun = std::time::Instant::now();
    while !log.contains("SAMPLE DATA") && begun.elapsed().as_secs() < 5 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        log = server.log();
    }
    assert!(log.contains("SAMPLE DATA"), "{log}");
}
