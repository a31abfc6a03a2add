//! The rule for recurring credits: set, shown, replaced and removed.

use serde_json::{Value, json};

use crate::fixture::Fixture;

fn set(fixture: &Fixture, credits: &str, every: &str, cap: &str) -> Value {
    fixture.json(&["refill", "set", "--credits", credits, "--every", every, "--cap", cap])
}

#[test]
fn a_rule_is_set_shown_and_removed() {
    let fixture = Fixture::new();
    let args = ["refill", "set", "--credits", "2", "--every", "month", "--cap", "2.5"];
    let text = "Every month (UTC), accounts get 2 credits, up to a balance of 2.5.\n";
    assert_eq!(fixture.admin(&args).success().stdout, text);
    assert_eq!(fixture.admin(&["refill", "show"]).success().stdout, text);
    let shown: Value = fixture.json(&["refill", "show"]);
    assert_eq!(shown, json!({"refill": {"credits": 2, "every": "monthly", "cap": 2.5}}));

    let none = "Accounts are not refilled.\n";
    assert_eq!(fixture.admin(&["refill", "off"]).success().stdout, none);
    assert_eq!(fixture.admin(&["refill", "show"]).success().stdout, none);
    assert_eq!(fixture.json::<Value>(&["refill", "show"]), json!({"refill": null}));
    assert_eq!(fixture.admin(&["refill", "off"]).success().stdout, none, "twice is no error");
}

#[test]
fn periods_have_two_names() {
    let fixture = Fixture::new();
    for (names, stored) in
        [(["day", "daily"], "daily"), (["week", "weekly"], "weekly"), (["month", "monthly"], "monthly")]
    {
        for name in names {
            assert_eq!(set(&fixture, "1", name, "1"), json!({"refill": {"credits": 1, "every": stored, "cap": 1}}));
        }
    }
    let text = fixture.admin(&["refill", "show"]).success().stdout;
    assert_eq!(text, "Every month (UTC), accounts get 1 credit, up to a balance of 1.\n");
}

#[test]
fn a_rule_that_is_not_valid_changes_nothing() {
    let fixture = Fixture::new();
    let kept = set(&fixture, "2", "week", "3");
    // credits, every, cap, what is wrong
    let table = [
        ("0", "month", "2", "--credits must be above 0"),
        ("2", "month", "0", "--cap must be above 0"),
        ("2", "year", "2", "must be day, week or month"),
        ("two", "month", "2", "--credits"),
        ("0.123456789", "month", "2", "--credits"),
    ];
    for (credits, every, cap, problem) in table {
        let args = ["refill", "set", "--credits", credits, "--every", every, "--cap", cap];
        let run = fixture.admin(&args);
        assert!(run.code == 2 && run.stderr.contains(problem), "{args:?}: {run:?}");
    }
    let incomplete = fixture.admin(&["refill", "set", "--credits", "2", "--every", "month"]);
    assert!(incomplete.code == 2 && incomplete.stderr.contains("--cap"), "{incomplete:?}");
    assert_eq!(fixture.json::<Value>(&["refill", "show"]), kept);
}

#[test]
fn changes_of_the_rule_are_in_the_audit_log() {
    let fixture = Fixture::new();
    let _ = set(&fixture, "2", "month", "2");
    fixture.admin(&["refill", "off", "--reason", "End of the trial"]).success();
    let log: Value = fixture.json(&["audit"]);
    let entries = log["entries"].as_array().unwrap();
    assert_eq!((&entries[0]["action"], &entries[0]["reason"]), (&json!("refill.remove"), &json!("End of the trial")));
    assert_eq!(entries[0]["before"], json!({"credits": 2, "every": "monthly", "cap": 2}));
    assert_eq!((&entries[1]["action"], &entries[1]["subject"]), (&json!("refill.set"), &json!("refill")));
    assert_eq!(entries[1]["outcome"]["after"], json!({"credits": 2, "every": "monthly", "cap": 2}));
}
