//! Plans: set, listed, on sale or not, imported all or none.

use std::fs;

use serde_json::Value;

use crate::fixture::{Fixture, text_of};

const STARTER: &[&str] = &[
    "plan",
    "set",
    "starter",
    "--chain-id",
    "1",
    "--label",
    "Starter",
    "--credits",
    "123456789.12345678",
    "--payment-kind",
    "native_value",
    "--token-symbol",
    "ETH",
    "--token-amount",
    "0.0025",
    "--token-decimals",
    "18",
];

fn plan_json(id: &str, credits: &str) -> String {
    format!(
        r#"{{"id":"{id}","chain_id":1,"token_symbol":"USDC","payment_kind":"erc20","credits":{credits},
            "token_amount":"5","token_decimals":6,"label":"{id}",
            "token_contract":"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"}}"#
    )
}

fn ids(fixture: &Fixture) -> Vec<String> {
    let list: Value = fixture.json(&["plan", "list", "--all"]);
    list["plans"].as_array().unwrap().iter().map(|plan| plan["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn plan_is_created_with_defaults_and_changed_by_field() {
    let fixture = Fixture::new();
    let text = fixture.admin(STARTER).success().stdout;
    assert_eq!(text, "Plan starter on chain 1 was saved and is on sale.\n");
    let key = ["plan", "set", "starter", "--chain-id", "1"];
    let changes = ["--offer", "Spring", "--discount-percent", "20", "--bonus-credits", "0.5", "--sort-order", "-3"];
    let recipient = ["--recipient", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"];
    let ran = fixture.admin(&[&key[..], &changes, &recipient, &["--json"]].concat()).success();
    assert!(ran.stdout.contains("\"credits\":123456789.12345678,\"bonus_credits\":0.5,"), "{}", ran.stdout);
    let plan: Value = ran.json();
    let fields = ["offer", "discount_percent", "sort_order", "label", "token_amount", "recipient"];
    let expected = ["\"Spring\"", "20", "-3", "\"Starter\"", "\"0.0025\""];
    for (field, expected) in fields.iter().zip(expected) {
        assert_eq!(plan[field].to_string(), expected, "{field}");
    }
    assert_eq!(plan["recipient"], "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed");
    let clear = ["--clear", "offer", "--clear", "discount-percent", "--clear", "recipient", "--active", "false"];
    let plan: Value = fixture.json(&[&key[..], &clear].concat());
    for field in ["offer", "discount_percent", "recipient"] {
        assert!(plan.get(field).is_none(), "{field}: {plan}");
    }
    assert_eq!((&plan["active"], &plan["bonus_credits"]), (&false.into(), &0.5.into()));
}

#[test]
fn invalid_plan_is_rejected_and_creates_no_store() {
    let fixture = Fixture::new();
    // options on top of the valid ones, what the message contains
    let table: [(&[&str], &str); 7] = [
        (&["--bonus-credits", "-1"], "bonus_credits must not be negative"),
        (&["--token-contract", "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"], "token_contract"),
        (&["--token-contract", "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB49"], "EIP-55"),
        (&["--token-contract", "zero"], "0x followed by 40"),
        (&["--discount-percent", "100"], "discount_percent must be below 100"),
        (&["--discount-percent", "300"], "--discount-percent"),
        (&["--clear", "label"], "--clear"),
    ];
    for (options, expected) in table {
        let message = fixture.admin(&[STARTER, options].concat()).misuse();
        assert!(message.contains(expected), "{options:?}: {message}");
    }
    let message = fixture.admin(&["plan", "set", "starter", "--chain-id", "1", "--label", "x"]).failure(2);
    assert!(message.contains("needs --token-symbol"), "{message}");
    fixture.admin(&["plan", "set", "starter"]).misuse();
    assert_eq!(fixture.files(), 0);
}

#[test]
fn inactive_plan_is_listed_only_with_all() {
    let fixture = Fixture::new();
    fixture.admin(STARTER).success();
    let activate = ["plan", "activate", "starter", "--chain-id", "1"];
    let text = fixture.admin(&[&activate[..], &["--off"]].concat()).success().stdout;
    assert_eq!(text, "Plan starter on chain 1 is off sale.\n");
    assert_eq!(fixture.admin(&["plan", "list"]).success().stdout.lines().count(), 1);
    let all = fixture.admin(&["plan", "list", "--all"]).success().stdout;
    assert!(all.lines().nth(1).unwrap().contains("123456789.12345678"), "{all}");
    assert_eq!(fixture.json::<Value>(&["plan", "list"])["plans"], Value::Array(Vec::new()));
    fixture.admin(&activate).success();
    assert_eq!(fixture.json::<Value>(&["plan", "list"])["plans"][0]["active"], true);
}

#[test]
fn a_plan_that_does_not_exist_is_not_found() {
    let fixture = Fixture::new();
    fixture.admin(STARTER).success();
    for command in ["remove", "activate"] {
        for (id, chain) in [("starter", "2"), ("other", "1")] {
            let message = fixture.admin(&["plan", command, id, "--chain-id", chain]).failure(4);
            assert!(message.contains(&format!("no plan {id} on chain {chain}")), "{message}");
        }
    }
    assert_eq!(ids(&fixture), ["starter"]);
    fixture.admin(&["plan", "remove", "starter", "--chain-id", "1"]).success();
    assert!(ids(&fixture).is_empty());
}

#[test]
fn plans_are_imported_from_an_array_an_object_or_standard_input() {
    let fixture = Fixture::new();
    let (a, b) = (plan_json("a", "1281023894.00760775"), plan_json("b", "2"));
    fs::write(fixture.path("array.json"), format!("[{a},{b}]")).unwrap();
    assert_eq!(fixture.json::<Value>(&["plan", "import", "array.json"])["imported"], 2);
    let exact = fixture.admin(&["plan", "list", "--json"]).success().stdout;
    assert!(exact.contains("\"credits\":1281023894.00760775,"), "{exact}");
    let object = format!("{{\"plans\":[{},{}]}}", plan_json("b", "3"), plan_json("c", "4"));
    let ran = fixture.admin_reading(&["plan", "import", "-"], &object).success();
    assert_eq!(ran.stdout, "2 plans imported.\n");
    assert_eq!(ids(&fixture), ["a", "b", "c"], "plans that the file does not mention stay");
    assert_eq!(
        fixture.json::<Value>(&["plan", "list"])["plans"][1]["credits"],
        3,
        "plans that it mentions are replaced"
    );
}

#[test]
fn plans_for_chains_that_the_configuration_lacks_are_named() {
    let fixture = Fixture::new();
    let recipient = "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed";
    let chain = |id: u64| format!("[chains.base]\nchain_id = {id}\nrecipient = \"{recipient}\"\n");
    fs::write(fixture.path("plans.json"), format!("[{}]", plan_json("a", "1"))).unwrap();
    for (id, noted) in [(1, false), (8453, true)] {
        fs::write(fixture.path("metering.toml"), chain(id)).unwrap();
        let ran = fixture.admin(&["plan", "import", "plans.json", "--config", "metering.toml"]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let note = "metering.toml has no chain with chain_id = 1; until it has one, nobody can buy 1 of";
        assert_eq!(ran.stderr.contains(note), noted, "{}", ran.stderr);
    }
}

#[test]
fn import_reads_the_output_of_list() {
    let (fixture, other) = (Fixture::new(), Fixture::new());
    fixture.admin(STARTER).success();
    let file = format!("[{}]", plan_json("a", "0.00000001"));
    fixture.admin_reading(&["plan", "import", "-"], &file).success();
    let list = fixture.admin(&["plan", "list", "--all", "--json"]).success().stdout;
    other.admin_reading(&["plan", "import", "-"], &list).success();
    assert_eq!(other.admin(&["plan", "list", "--all", "--json"]).success().stdout, list);
}

#[test]
fn one_invalid_plan_rejects_the_whole_import() {
    let fixture = Fixture::new();
    let good = plan_json("good", "1");
    // file, what the message contains
    let table = [
        (format!("[{good},{}]", plan_json("bad", "0")), "entry 2: plan bad on chain 1: credits must be above zero"),
        (format!("[{good},{}]", plan_json("bad", "\"one\"")), "plan 2 (bad on chain 1)"),
        (format!("[{good},{}]", plan_json("bad", "0.000000001")), "too many decimal places"),
        (format!("[{good},{}]", plan_json("good", "2")), "plan good on chain 1 appears twice, as entries 1 and 2"),
        (format!("[{good},{{}}]"), "plan 2: missing field `id`"),
        (format!("{{\"plan\":[{good}]}}"), "missing field `plans`"),
        (format!("[{good}"), "EOF"),
        ("plans".to_owned(), "expected an array of plans"),
    ];
    for (file, expected) in &table {
        let message = fixture.admin_reading(&["plan", "import", "-"], file).failure(1);
        assert!(message.contains(expected) && message.contains("nothing was imported"), "{file}: {message}");
        assert_eq!(fixture.files(), 0, "a refused file leaves no store behind");
    }
    fixture.admin(STARTER).success();
    for (file, _) in &table {
        fixture.admin_reading(&["plan", "import", "-"], file).failure(1);
    }
    assert_eq!(ids(&fixture), ["starter"]);
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure() {
    let fixture = Fixture::new();
    let missing = text_of(&fixture.path("missing.json"));
    let message = fixture.admin(&["plan", "import", &missing]).failure(1);
    assert!(message.contains(&missing), "{message}");
    fs::write(fixture.path("latin1.json"), [b'[', 0xe4, b']']).unwrap();
    fixture.admin(&["plan", "import", "latin1.json"]).failure(1);
}
