//! Webhooks and deliveries over the operators' API and on the command line: both say the same.

use metering_tests::command::ProgramOutput;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::Console;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// A port that nothing listens on.
const CLOSED: &str = "http://127.0.0.1:1/s3cret";

fn document(output: ProgramOutput) -> Value {
    assert_eq!(output.code, Some(0), "{output:?}");
    serde_json::from_str(&output.stdout).unwrap()
}

/// Ids and numbers of a list, which stay the same while deliveries are being sent.
fn ids(list: &Value) -> Vec<Value> {
    list["data"].as_array().unwrap().iter().map(|one| json!([one["id"], one["event"]["id"]])).collect()
}

#[test]
fn operators_find_webhooks_and_deliveries_here_and_there() {
    let settings = [("METERING_WEBHOOKS__URL", CLOSED), ("METERING_WEBHOOKS__SECRET", SECRET)];
    let console = Console::start_with(Site::new(), &settings);
    let (org, key) = console.account("my-agent", 5);
    let made = console.server.client_with(&key).post("/webhooks", &json!({"url": "https://hooks.example.com/"}));
    let webhook = made.expect(201).json()["data"]["id"].clone();

    let sent = document(console.remote(&["--reason", "a test", "webhook", "test", "--json"]));
    assert_eq!((&sent["event"]["type"], &sent["webhook_id"]), (&"webhook.test".into(), &operators_id()));
    let operators = format!("we_{}", "0".repeat(32));
    for args in [
        &["webhook", "list", "--json"][..],
        &["webhook", "list", "--account", &org, "--json"],
        &["webhook", "deliveries", "--json"],
        &["webhook", "deliveries", "--account", &org, "--json"],
        &["webhook", "deliveries", "--state", "parked", "--limit", "5", "--json"],
        &["webhook", "deliveries", "--webhook", &operators, "--state", "pending", "--limit", "1", "--json"],
    ] {
        let (here, there) = (console.site.admin_json(&args[..args.len() - 1]), document(console.remote(args)));
        assert_eq!(ids(&there), ids(&here), "{args:?}");
        assert!(!there.to_string().contains("whsec_"), "{there}");
    }
    let list = document(console.remote(&["webhook", "list", "--account", &org, "--json"]));
    assert_eq!(list["data"][0]["id"], webhook);

    let first = document(console.remote(&["webhook", "deliveries", "--limit", "1", "--json"]));
    let next = first["next"].as_str().unwrap();
    let rest = ["webhook", "deliveries", "--after", next, "--json"];
    let (here, there) = (console.site.admin_json(&rest[..4]), document(console.remote(&rest)));
    assert_eq!(ids(&there), ids(&here));
    assert!(!ids(&there).is_empty() && !ids(&there).contains(&ids(&first)[0]), "{there}");

    let number = sent["id"].to_string();
    let resent = document(console.remote(&["--reason", "Ticket 7", "webhook", "resend", &number, "--json"]));
    assert_eq!((&resent["id"], &resent["state"]), (&sent["id"], &"pending".into()));
    let alert =
        document(console.remote(&["--reason", "Ticket 7", "account", "alert", &org, "--below", "2.5", "--json"]));
    assert_eq!(alert["below"].to_string(), "2.5");
    let balance = console.server.client_with(&key).get("/credits/balance").expect(200).json();
    assert_eq!(balance["alert_below"].to_string(), "2.5");
    let log = console.viewer().get("/admin/audit").expect(200).json();
    let actions: Vec<_> = log["entries"].as_array().unwrap().iter().map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions[..3], ["account.alert", "webhook.resend", "webhook.test"].map(Value::from));

    // Changes need a reason, and things that exist.
    assert_eq!(console.remote(&["webhook", "test"]).code, Some(2));
    assert_eq!(console.remote(&["--reason", "x", "webhook", "resend", "999999"]).code, Some(4));
    assert_eq!(console.remote(&["webhook", "list", "--account", "org_00000000000000000000"]).code, Some(4));
    assert!(!console.server.log().contains(&SECRET[6..]));
    console.site.verify();
}

fn operators_id() -> Value {
    format!("we_{}", "0".repeat(32)).into()
}
