//! Held requests over the operators' API and on the command line: both say the same.

use metering_tests::command::ProgramOutput;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::Console;

const SECRET: &str = "correct horse battery staple";
const UNKNOWN: &str = "req_00000000000000000000000000000000";

fn document(output: ProgramOutput) -> Value {
    assert_eq!(output.code, Some(0), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn operators_find_held_requests_here_and_there() {
    let console = Console::start_with(Site::new(), &[("METERING_BILLING__INTERNAL_SECRET", SECRET)]);
    let (org, key) = console.account("my-agent", 5);
    let service = console.server.client_with(&key).with_header("X-BDS-Internal-Billing-Secret", SECRET);
    let hold = |amount: &str| -> String {
        let request = json!({"path": "/render", "method": "POST", "amount": amount});
        let held = service.post("/internal/billing/hold", &request).expect(200).json();
        held["request"]["id"].as_str().unwrap().to_owned()
    };
    let (open, captured) = (hold("0.5"), hold("1"));
    let _ = service.post("/internal/billing/capture", &json!({"id": captured, "amount": "0.25"})).expect(200);

    let listed = console.viewer().get(&format!("/admin/accounts/{org}/requests")).expect(200).json();
    assert_eq!(listed["requests"].as_array().unwrap().len(), 1);
    let of = &listed["requests"][0];
    assert_eq!((&of["org_id"], &of["request"]["id"]), (&Value::from(&*org), &Value::from(&*open)));
    assert_eq!(of["request"]["held"].to_string(), "0.5");
    let account = console.viewer().get(&format!("/admin/accounts/{org}")).expect(200).json();
    let amounts = ["credit_balance", "credits_held", "total_credits_used"].map(|name| account[name].to_string());
    assert_eq!(amounts, ["4.25", "0.5", "0.25"]);

    // From another machine, and on the store.
    for args in [
        &["request", "list", &org, "--json"][..],
        &["request", "show", &open, "--json"],
        &["request", "show", &captured, "--json"],
        &["account", "show", &org, "--json"],
    ] {
        let local = console.site.admin_json(&args[..args.len() - 1]);
        assert_eq!(document(console.remote(args)), local, "{args:?}");
    }
    let text = console.remote(&["request", "show", &captured]).stdout;
    assert!(text.contains("Charged     0.25") && text.contains("Released    0.75"), "{text}");
    assert_eq!(console.remote(&["request", "show", UNKNOWN]).code, Some(4));
    assert_eq!(console.remote(&["request", "list", "org_00000000000000000000"]).code, Some(4));

    // path, status
    for (path, status) in [
        (format!("/admin/requests/{UNKNOWN}"), 404),
        ("/admin/requests/42".to_owned(), 400),
        ("/admin/accounts/org_00000000000000000000/requests".to_owned(), 404),
        (format!("/admin/accounts/{org}/requests?limit=0"), 400),
        (format!("/admin/accounts/{org}/requests?limit=1001"), 400),
    ] {
        let _ = console.viewer().get(&path).expect(status);
    }
    let stranger = metering_tests::client::Client::new(console.admin);
    for path in [format!("/admin/requests/{open}"), format!("/admin/accounts/{org}/requests")] {
        let _ = stranger.get(&path).expect(401);
        let _ = stranger.clone().with_key(&key).get(&path).expect(401);
    }
    console.site.verify();
}
