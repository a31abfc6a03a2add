//! A new catalogue on usage that a real server charged: checked, compared and rehearsed while the server runs.

use metering_core::Credits;
use metering_sample::ROUTES;
use metering_tests::command::ProgramOutput;
use serde_json::{Value, json};

use super::administration::Console;

fn document(output: &ProgramOutput) -> Value {
    assert_eq!(output.code, Some(0), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// A number of base calls, as JSON prints their credits.
fn base_calls(count: i64) -> Value {
    let credits = Credits::from_atoms(count * Credits::BASE_CALL.atoms());
    serde_json::from_str(&serde_json::to_string(&credits).unwrap()).unwrap()
}

/// The sample's catalogue with dearer prices, and without `/mpp/pool/...`.
fn dearer() -> String {
    let mut file: Value = serde_json::from_str(ROUTES).unwrap();
    let endpoints = file["endpoints"].as_array_mut().unwrap();
    endpoints.retain(|route| !route["path"].as_str().unwrap().starts_with("/mpp/pool/"));
    for route in endpoints {
        let path = route["path"].as_str().unwrap();
        if path == "/mpp/ethPrice" {
            route["credit_weight"] = json!(15);
        } else if path.starts_with("/mpp/timeSeries/") {
            let weight = route["credit_weight"].as_u64().unwrap();
            route["credit_weight"] = json!(2 * weight);
        }
    }
    file.to_string()
}

#[test]
fn rehearsal_of_charged_requests_is_exact_beside_the_server() {
    let console = Console::start();
    let (org, key) = console.account("rehearsed", 5);
    let client = console.server.client_with(&key);
    // path, calls, price in base calls
    let requests = [
        ("/mpp/ethPrice", 4, 5),
        (
            "/mpp/timeSeries/0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2/0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640/60/60",
            1,
            5,
        ),
        (
            "/mpp/timeSeries/0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2/0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640/601/60",
            1,
            10,
        ),
        ("/mpp/pool/0x88e6a0c2ddd26feeb64f039a2c41296fcb3f5640/metadata", 2, 1),
    ];
    for (path, calls, price) in requests {
        for _ in 0..calls {
            let charged = client.get(path).expect(200);
            let credits = Credits::from_atoms(price * Credits::BASE_CALL.atoms()).to_string();
            assert_eq!(charged.header("x-bds-credit-charged"), Some(credits.as_str()), "{path}");
        }
    }
    let [old, new] = [("routes.json", ROUTES.to_owned()), ("new.json", dearer())]
        .map(|(name, text)| console.site.write(name, &text).to_str().unwrap().to_owned());
    let rehearse = |file: &str| {
        document(&console.site.admin(&["catalogue", "rehearse", file, "--with", &old, "--days", "2", "--json"]))
    };
    let same = rehearse(&old);
    assert_eq!((&same["totals"]["credits_difference"], &same["totals"]["credits_after"]), (&json!(0), &base_calls(37)));
    assert_eq!((&same["totals"]["estimated_calls"], &same["totals"]["unknown_calls"]), (&json!(0), &json!(0)));
    let dearer = rehearse(&new);
    let totals = &dearer["totals"];
    // 4 × 15 and 2 × (5 + 10).
    assert_eq!((&totals["credits_before"], &totals["credits_after"]), (&base_calls(37), &base_calls(90)));
    assert_eq!(
        (&totals["calls"], &totals["removed_calls"], &totals["unknown_calls"]),
        (&json!(8), &json!(2), &json!(0))
    );
    assert_eq!((&dearer["by_account"][0]["org_id"], &dearer["run_outs"]), (&json!(org), &json!(0)));
    // The server keeps charging, and the balance is unchanged.
    let _ = client.get("/mpp/ethPrice").expect(200);
    console.site.verify();
}

#[test]
fn served_catalogue_is_what_a_file_is_compared_with() {
    let console = Console::start();
    let write = |name: &str, text: &str| console.site.write(name, text).to_str().unwrap().to_owned();
    let new = write("new.json", &dearer());
    let remote = document(&console.remote(&["catalogue", "diff", &new, "--json"]));
    let old = write("routes.json", ROUTES);
    let local = document(&console.site.admin(&["catalogue", "diff", &new, "--with", &old, "--json"]));
    assert_eq!(remote["changes"], local["changes"]);
    assert!(remote["changes"].as_array().unwrap().len() > 2, "{remote}");

    let reserved =
        r#"{"market": "M", "version": 1, "endpoints": [{"path": "/docs/x", "method": "GET", "metered": true}]}"#;
    let reserved = write("reserved.json", reserved);
    let refused = console.remote(&["catalogue", "check", &reserved]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.stdout, "paths under /docs are reserved for the service\n");
    assert_eq!(console.site.admin(&["catalogue", "check", &reserved]).code, Some(0));
    assert_eq!(console.remote(&["catalogue", "check", &new]).code, Some(0));
}

#[test]
fn start_names_everything_that_is_wrong_with_a_catalogue() {
    let site = metering_tests::site::Site::new();
    let text = r#"{"market": "M", "endpoints": [{"path": "/a", "method": "get", "metered": true, "pirce": "1"}]}"#;
    let file = site.write("routes.json", text);
    let ended = site.server().set("METERING_CATALOGUE", file.to_str().unwrap()).run();
    assert_ne!(ended.code, Some(0), "{ended:?}");
    for problem in ["version is missing", "upper-case HTTP method", "unknown key pirce; did you mean price?"] {
        assert!(ended.stderr.contains(problem), "{problem}: {ended:?}");
    }
}
