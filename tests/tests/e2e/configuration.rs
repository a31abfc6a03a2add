//! The server's settings, as seen from outside.

use std::ffi::OsStr;

use metering_tests::site::Site;

use crate::wire::BASE;

#[test]
fn what_is_wrong_is_named_and_nothing_is_started() {
    let site = Site::new();
    let file = site.write("typo.toml", "listne = '127.0.0.1:1'\n");
    let file = file.to_str().unwrap();
    let missing = site.path("missing.toml");
    // variables, flags, what the message names
    type Words<'a> = &'a [&'a str];
    let table: [(Words<'_>, Words<'_>, &str); 12] = [
        (&["METERING_UNKNOWN", "1"], &[], "unknown"),
        (&["METERING_HTTP__HEADR_TIMEOUT", "1s"], &[], "headr_timeout"),
        (&["METERING_HTTP__HEADER_TIMEOUT", "soon"], &[], "http.header_timeout"),
        (&["METERING_METER__QUEUE", "0"], &[], "meter.queue"),
        (&["METERING_BILLING__INTERNAL_SECRET", "short"], &[], "billing.internal_secret"),
        (&["METERING_UPSTREAM", "ftp://example"], &[], "upstream"),
        (&["METERING_PRIMARY_CHAIN", "base"], &[], "primary_chain"),
        (&["METERING_DATABASE", "mysql://x"], &[], "database"),
        (&["METERING_CATALOGUE", "/nonexistent/routes.json"], &[], "catalogue"),
        (&[], &["--config", file], "listne"),
        (&[], &["--config", missing.to_str().unwrap()], "missing.toml"),
        (&[], &["--upstream", "not a url"], "upstream"),
    ];
    for (variables, flags, named) in table {
        let mut setup = site.server().args(flags);
        if let [name, value] = variables {
            setup = setup.set(name, value);
        }
        let ran = setup.run();
        assert_eq!(ran.code, Some(1), "{named}: {ran:?}");
        assert!(ran.stderr.starts_with("metering-server: "), "{named}: {ran:?}");
        assert!(ran.stderr.contains(named), "{named}: {ran:?}");
        assert!(!ran.stdout.contains("listening"), "{named}: {ran:?}");
    }
    let ran = site.server().args(["--unknown-flag"]).run();
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn a_catalogue_with_a_mistake_is_refused() {
    let site = Site::new();
    let route = |path: &str| {
        format!(
            "{{\"market\":\"M\",\"version\":1,\"endpoints\":[{{\"path\":\"{path}\",\"method\":\"GET\",\"metered\":true,\
             \"sse\":false,\"description\":\"\",\"params\":[],\"credit_weight\":1}}]}}"
        )
    };
    for text in ["{".to_owned(), route("/a/{undeclared}"), route("no-slash"), route("/credits/mine"), route("/metrics")]
    {
        let file = site.write("routes.json", &text);
        let ran = site.server().args([OsStr::new("--catalogue"), file.as_os_str()]).run();
        assert_eq!(ran.code, Some(1), "{text}: {ran:?}");
        assert!(ran.stderr.contains("catalogue"), "{text}: {ran:?}");
    }
}

#[test]
fn a_misspelt_key_of_the_catalogue_stops_the_start_and_is_named() {
    let site = Site::new();
    // the route's price, parts of the message
    let table = [
        ("\"credit_wieght\":72", ["credit_wieght", "credit_weight"]),
        ("\"price\":\"0.01\",\"credit_weight\":72", ["price", "credit_weight"]),
        ("\"price\":\"-0.01\"", ["price", "must be 0 to"]),
    ];
    for (price, parts) in table {
        let text = format!(
            "{{\"market\":\"M\",\"version\":1,\"endpoints\":[{{\"path\":\"/report\",\"method\":\"GET\",\"metered\":true,{price}}}]}}"
        );
        let file = site.write("routes.json", &text);
        let ran = site.server().args([OsStr::new("--catalogue"), file.as_os_str()]).run();
        assert_eq!(ran.code, Some(1), "{price}: {ran:?}");
        for part in parts.into_iter().chain(["routes.json", "route GET /report"]) {
            assert!(ran.stderr.contains(part), "{part}: {ran:?}");
        }
    }
}

#[test]
fn a_misspelt_path_is_answered_with_the_route_that_was_probably_meant() {
    let site = Site::new();
    let account = site.account("1");
    let server = site.server().start();
    let refused = server.client_with(&account.api_key).get("/mpp/ethprice").expect(404);
    assert_eq!(
        (refused.error(), refused.json()["nearest_route"].as_str()),
        ("unknown_route".into(), Some("/mpp/ethPrice"))
    );
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("/mpp/ethPrice") && message.contains("metering routes"), "{message}");
    // Without a live key, a client learns nothing about the routes.
    let stranger = server.client().get("/mpp/ethprice").expect(401);
    assert!(!stranger.text().contains("ethPrice"));
}

#[test]
fn nobody_is_told_to_buy_where_nothing_is_for_sale() {
    let site = Site::new();
    let account = site.account("0");
    let server = site.server().start();
    let refused = server.client_with(&account.api_key).get("/mpp/ethPrice").expect(402);
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("ask the operator") && !message.contains("buy"), "{message}");
}

#[test]
fn the_effective_configuration_is_printed_with_its_secrets_masked() {
    let site = Site::new();
    let file = site.write("metering.toml", "[http]\nbody_timeout = '7s'\nheader_timeout = '7s'\n");
    let ran = site
        .server()
        .set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery staple")
        .set("METERING_HTTP__HEADER_TIMEOUT", "9s")
        .args([OsStr::new("--config"), file.as_os_str()])
        .args(["--print-config"])
        .run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("horse"), "{ran:?}");
    for line in [
        "listen = \"127.0.0.1:0\"",
        "body_timeout = \"7s\"",
        "header_timeout = \"9s\"",
        "internal_secret = \"********\"",
    ] {
        assert!(ran.stdout.lines().any(|found| found == line), "{line}: {}", ran.stdout);
    }
    assert!(!site.database().exists(), "printing the configuration changes nothing");
}

#[test]
fn what_is_printed_can_be_read_back() {
    let site = Site::new();
    let account = site.account("1");
    let ran = site.server().args(["--print-config"]).run();
    let file = site.write("printed.toml", &ran.stdout);
    let server = site.server().args([OsStr::new("--config"), file.as_os_str()]).start();
    let _ = server.client_with(&account.api_key).get(BASE).expect(200);
}

#[test]
fn a_databases_password_is_never_printed() {
    let site = Site::new();
    // url, how it is printed
    let table = [
        (
            "postgres://metering:SECRET@a.example.com:5432,b.example.com:5433/metering?sslmode=require",
            "postgres://metering:********@a.example.com:5432,b.example.com:5433/metering?sslmode=require",
        ),
        ("postgres://metering@h/d?password=SECRET", "postgres://metering@h/d?password=********"),
        ("postgres://u:SEC/RET@h/d", "********"),
        ("postgres://u:1234/SECRET@h:1/d", "********"),
        ("mysql://u:SECRET@h/d", "********"),
        ("sqlite:/var/lib/metering.db", "sqlite:/var/lib/metering.db"),
    ];
    for (url, shown) in table {
        let ran = site.server().set("METERING_DATABASE", url).args(["--print-config"]).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stdout.contains(&format!("database = \"{shown}\"\n")), "{}", ran.stdout);
        assert!(!format!("{ran:?}").contains("SECRET") && !format!("{ran:?}").contains("RET@"), "{ran:?}");
    }
    // An invalid URL is not repeated: the part before a slash looks like a host and its port.
    for password in ["1234/SECRET", "1234#SECRET", "1234?SECRET"] {
        let url = format!("postgres://metering:{password}@127.0.0.1:15601/metering");
        let server = site.server().set("METERING_DATABASE", &url).run();
        let admin = Site::on_database(url).admin(&["account", "list"]);
        for ran in [server, admin] {
            assert!(ran.stderr.contains("%2F") && !ran.stderr.contains("SECRET"), "{ran:?}");
            assert!(!ran.stderr.contains("1234"), "{ran:?}");
        }
    }
}
