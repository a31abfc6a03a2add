//! Requests on the command line: what is held, what was charged and why, and whose requests a key may see.

use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::lifecycle::terminal::Terminal;
use crate::keys::made;
use crate::support::script::{Script, event, events_head, json_response, last_chunk};
use crate::support::wire::BASE;

const CATALOGUE: &str = r#"{"market": "TEST", "version": 1, "endpoints": [{"path": "/v1/chat", "method": "POST",
    "metered": true, "sse": true, "price": {"max": "0.5", "units": {"tokens": "0.001"},
    "report": {"json": {"tokens": "/usage/total_tokens"}}}}]}"#;
const UNKNOWN: &str = "req_00000000000000000000000000000000";

fn serving(site: &Site, upstream: &Script) -> Server {
    let catalogue = site.write("usage.json", CATALOGUE).display().to_string();
    site.server().args(["--upstream".into(), upstream.url(), "--catalogue".into(), catalogue]).start()
}

fn terminal(site: &Site, server: &Server, key: &str) -> Terminal {
    let url = format!("http://{}", server.address());
    Terminal::new(site.path("home")).set("METERING_CLIENT_URL", &url).set("METERING_CLIENT_API_KEY", key)
}

/// The arguments of a call whose upstream sends these steps.
fn call(steps: &[Value]) -> [String; 4] {
    ["call", "/v1/chat", "--data", &json!({"steps": steps}).to_string()].map(str::to_owned)
}

#[test]
fn what_is_held_is_shown_until_its_cost_is_known() {
    let (site, upstream) = (Site::verified(), Script::start());
    let account = site.account("2");
    let server = serving(&site, &upstream);
    let terminal = terminal(&site, &server, &account.api_key);
    let run = |args: &[String]| terminal.run_successfully(&args.iter().map(String::as_str).collect::<Vec<_>>());

    // A complete response: its head has the charge.
    let whole = run(&call(&[json_response(r#"{"usage": {"total_tokens": 20}}"#)]));
    assert_eq!(whole.stderr, "Charged 0.02 credits; the balance is 1.98.\n");
    // A stream: its cost is known only at its end.
    let report = event(r#"{"usage": {"total_tokens": 30}}"#);
    let streamed = run(&call(&[events_head(), event("{}"), report.clone(), last_chunk("")]));
    assert_eq!(streamed.stderr, "Charged 0.03 credits; 0.5 were held.\n");
    assert_eq!(terminal.run_successfully(&["requests"]).stdout.lines().count(), 1, "nothing is held");

    // One that is in progress.
    let waiting = call(&[events_head(), event("{}"), Value::Null, report, last_chunk("")]);
    let running = terminal.spawn(&waiting.each_ref().map(String::as_str));
    upstream.wait_for_requests(3);
    crate::support::wait::until("credits are held", || terminal.json(&["requests"])["data"][0].is_object());
    let held = terminal.json(&["requests"])["data"][0].clone();
    let id = held["id"].as_str().unwrap();
    assert_eq!((held["held"].to_string().as_str(), &held["state"]), ("0.5", &"held".into()));
    let balance = terminal.run_successfully(&["balance"]).stdout;
    assert!(balance.contains("Balance     1.45\n") && balance.contains("Held        0.5 for requests"), "{balance}");
    assert_eq!(terminal.json(&["balance"])["credits_held"].to_string(), "0.5");
    let list = terminal.run_successfully(&["requests"]).stdout;
    assert!(list.lines().nth(1).unwrap().starts_with(&format!("{id}  POST /v1/chat   0.5  ")), "{list}");
    let shown = terminal.run_successfully(&["requests", "show", id]).stdout;
    assert!(shown.contains("State       held: its cost is not known yet"), "{shown}");
    let local = site.admin_json(&["request", "show", id]);
    assert_eq!((&local["request"], &local["org_id"]), (&held, &account.org_id.as_str().into()));

    upstream.release();
    let finished = running.finish();
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), "Charged 0.03 credits; 0.5 were held.\n"));
    let settled = terminal.json(&["requests", "show", id]);
    let amounts = ["held", "charged", "released"].map(|name| settled[name].to_string());
    assert_eq!((amounts, &settled["settled_by"]), (["0", "0.03", "0.47"].map(str::to_owned), &"report".into()));
    let balance = terminal.run_successfully(&["balance"]).stdout;
    assert!(balance.contains("Balance     1.92\n") && !balance.contains("Held"), "{balance}");
    drop(server);
}

#[test]
fn a_key_without_read_sees_its_own_requests_only() {
    let (site, upstream) = (Site::new(), Script::start());
    let account = site.account("2");
    let server = serving(&site, &upstream);
    let caller = made(&server.client_with(&account.api_key), &json!({"scopes": ["call"]}));
    let response = |key: &str| {
        let steps = json!({"steps": [json_response(r#"{"usage": {"total_tokens": 1}}"#)]});
        let response = server.client_with(key).post("/v1/chat", &steps).expect(200);
        response.header("x-bds-request-id").unwrap().to_owned()
    };
    let (own, others) = (response(&caller.secret), response(&account.api_key));
    let terminal = terminal(&site, &server, &caller.secret);
    assert_eq!(terminal.json(&["requests", "show", &own])["charged"].to_string(), "0.001");
    // arguments, exit code, error
    for (args, code, error) in [
        (&["requests"][..], 6, "key_scope"),
        (&["requests", "show", &others], 4, "not_found"),
        (&["requests", "show", UNKNOWN], 4, "not_found"),
    ] {
        let refused = terminal.run(args);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(code), ""), "{args:?}: {refused:?}");
        assert!(refused.stderr.contains(error), "{args:?}: {refused:?}");
    }
}

#[test]
fn the_id_of_a_request_explains_its_charge() {
    let site = Site::verified();
    let (account, other) = (site.account("2"), site.account("2"));
    let server = site.server().start();
    let client = server.client_with(&account.api_key);
    let id = |response: &Response| response.header("x-request-id").unwrap().to_owned();
    let charged = id(&client.get(BASE).expect(200));
    let _ = client.get("/mpp/ethPrice");
    let document = client.get(&format!("/requests/{charged}")).expect(200).json();
    assert_eq!((document["charged"].to_string().as_str(), &document["state"]), ("0.0001388889", &"captured".into()));
    let words = document["explanation"].as_str().unwrap();
    assert!(words.starts_with(&format!("GET {BASE} was charged 0.0001388889 credits to the key ")), "{words}");
    assert!(words.contains(" Price version 1: 0.1389 credits"), "{words}");
    let shown = terminal(&site, &server, &account.api_key).run_successfully(&["requests", "show", &charged]).stdout;
    assert!(shown.contains("Charged  0.0001388889\n") && shown.contains(words), "{shown}");
    let _ = server.client_with(&other.api_key).get(&format!("/requests/{charged}")).expect(404);

    // Operators get the same, without the server too.
    let local = site.admin_json(&["request", "show", &charged]);
    assert_eq!((&local["request"], &local["org_id"]), (&document, &account.org_id.as_str().into()));
    drop(server);
    assert_eq!(site.admin_json(&["request", "show", &charged]), local);

    let server = site.server().start();
    let refused = id(&server.client().get(BASE).expect(401));
    let missing = site.admin(&["request", "show", &refused]);
    assert!(missing.code == Some(4) && missing.stderr.contains("nothing was charged under this id"), "{missing:?}");
}
