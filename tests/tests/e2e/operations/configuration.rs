//! The server's settings, as seen from outside.

use std::ffi::OsStr;

use metering_tests::site::Site;

use crate::support::wire::BASE;

#[test]
fn invalid_settings_are_named_and_nothing_starts() {
    let site = Site::new();
    let file = site.write("typo.toml", "listne = '127.0.0.1:1'\n");
    let file = file.to_str().unwrap();
    let missing = site.path("missing.toml");
    // variables, flags, what the message names
    type Args<'a> = &'a [&'a str];
    let table: [(Args<'_>, Args<'_>, &str); 6] = [
        (&["METERING_UNKNOWN", "1"], &[], "unknown"),
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
        let output = setup.run();
        assert_eq!(output.code, Some(1), "{named}: {output:?}");
        assert!(output.stderr.starts_with("metering-server: "), "{named}: {output:?}");
        assert!(output.stderr.contains(named), "{named}: {output:?}");
        assert!(!output.stdout.contains("listening"), "{named}: {output:?}");
    }
    let output = site.server().args(["--unknown-flag"]).run();
    assert_eq!(output.code, Some(2), "{output:?}");
}

#[test]
fn misspelt_catalogue_key_stops_startup_and_is_named() {
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
        let output = site.server().args([OsStr::new("--catalogue"), file.as_os_str()]).run();
        assert_eq!(output.code, Some(1), "{price}: {output:?}");
        for part in parts.into_iter().chain(["routes.json", "route GET /report"]) {
            assert!(output.stderr.contains(part), "{part}: {output:?}");
        }
    }
}

#[test]
fn misspelt_path_suggests_the_right_route() {
    let (_site, account, server) = Site::serving("1");
    let refused = server.client_with(&account.api_key).get("/mpp/ethprice").expect(404);
    assert_eq!(
        (refused.error(), refused.json()["nearest_route"].as_str()),
        ("unknown_route".into(), Some("/mpp/ethPrice"))
    );
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("/mpp/ethPrice") && message.contains("metering routes"), "{message}");
    // Without a live key, a client gets no information about the routes.
    let anonymous = server.client().get("/mpp/ethprice").expect(401);
    assert!(!anonymous.text().contains("ethPrice"));
}

#[test]
fn buying_is_not_suggested_when_nothing_is_for_sale() {
    let (_site, account, server) = Site::serving("0");
    let refused = server.client_with(&account.api_key).get("/mpp/ethPrice").expect(402);
    let message = refused.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("ask the operator") && !message.contains("buy"), "{message}");
}

#[test]
fn effective_configuration_is_printed_with_secrets_masked() {
    let site = Site::new();
    let file = site.write("metering.toml", "[http]\nbody_timeout = '7s'\nheader_timeout = '7s'\n");
    let output = site
        .server()
        .set("METERING_BILLING__INTERNAL_SECRET", "correct horse battery staple")
        .set("METERING_HTTP__HEADER_TIMEOUT", "9s")
        .args([OsStr::new("--config"), file.as_os_str()])
        .args(["--print-config"])
        .run();
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(!output.stdout.contains("horse"), "{output:?}");
    for line in [
        "listen = \"127.0.0.1:0\"",
        "body_timeout = \"7s\"",
        "header_timeout = \"9s\"",
        "internal_secret = \"********\"",
    ] {
        assert!(output.stdout.lines().any(|found| found == line), "{line}: {}", output.stdout);
    }
    assert!(!site.database().exists(), "printing the configuration changes nothing");
}

#[test]
fn printed_configuration_can_be_loaded() {
    let site = Site::new();
    let account = site.account("1");
    let output = site.server().args(["--print-config"]).run();
    let file = site.write("printed.toml", &output.stdout);
    let server = site.server().args([OsStr::new("--config"), file.as_os_str()]).start();
    let _ = server.client_with(&account.api_key).get(BASE).expect(200);
}

#[test]
fn database_password_is_never_printed() {
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
        let output = site.server().set("METERING_DATABASE", url).args(["--print-config"]).run();
        assert_eq!(output.code, Some(0), "{output:?}");
        assert!(output.stdout.contains(&format!("database = \"{shown}\"\n")), "{}", output.stdout);
        assert!(!format!("{output:?}").contains("SECRET") && !format!("{output:?}").contains("RET@"), "{output:?}");
    }
    // An invalid URL is not repeated: the part before a slash looks like a host and its port.
    for password in ["1234/SECRET", "1234#SECRET", "1234?SECRET"] {
        let url = format!("postgres://metering:{password}@127.0.0.1:15601/metering");
        let server = site.server().set("METERING_DATABASE", &url).run();
        let admin = Site::on_database(url).admin(&["account", "list"]);
        for output in [server, admin] {
            assert!(output.stderr.contains("%2F") && !output.stderr.contains("SECRET"), "{output:?}");
            assert!(!output.stderr.contains("1234"), "{output:?}");
        }
    }
}
