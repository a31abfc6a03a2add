//! Plans: set, listed, on sale or not, imported all or none.

use std::fs;

use serde_json::Value;

use crate::desk::{Desk, text_of};

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

fn ids(desk: &Desk) -> Vec<String> {
    let list: Value = desk.json(&["plan", "list", "--all"]);
    list["plans"].as_array().unwrap().iter().map(|plan| plan["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plan_is_made_with_its_defaults_and_then_changed_field_by_field() {
    let desk = Desk::new();
    let text = desk.admin(STARTER).success().stdout;
    assert_eq!(text, "Plan starter on chain 1 was saved and is on sale.\n");
    let key = ["plan", "set", "starter", "--chain-id", "1"];
    let changes = ["--offer", "Spring", "--discount-percent", "20", "--bonus-credits", "0.5", "--sort-order", "-3"];
    let recipient = ["--recipient", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"];
    let ran = desk.admin(&[&key[..], &changes, &recipient, &["--json"]].concat()).success();
    assert!(ran.stdout.contains("\"credits\":123456789.12345678,\"bonus_credits\":0.5,"), "{}", ran.stdout);
    let plan: Value = ran.json();
    let fields = ["offer", "discount_percent", "sort_order", "label", "token_amount", "recipient"];
    let expected = ["\"Spring\"", "20", "-3", "\"Starter\"", "\"0.0025\""];
    for (field, expected) in fields.iter().zip(expected) {
        assert_eq!(plan[field].to_string(), expected, "{field}");
    }
    assert_eq!(plan["recipient"], "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed");
    let clear = ["--clear", "offer", "--clear", "discount-percent", "--clear", "recipient", "--active", "false"];
    let plan: Value = desk.json(&[&key[..], &clear].concat());
    for field in ["offer", "discount_percent", "recipient"] {
        assert!(plan.get(field).is_none(), "{field}: {plan}");
    }
    assert_eq!((&plan["active"], &plan["bonus_credits"]), (&false.into(), &0.5.into()));
}

#[test]
fn a_plan_that_could_not_be_sold_is_refused_and_leaves_no_store() {
    let desk = Desk::new();
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
        let message = desk.admin(&[STARTER, options].concat()).misuse();
        assert!(message.contains(expected), "{options:?}: {message}");
    }
    let message = desk.admin(&["plan", "set", "starter", "--chain-id", "1", "--label", "x"]).failure(2);
    assert!(message.contains("needs --token-symbol"), "{message}");
    desk.admin(&["plan", "set", "starter"]).misuse();
    assert_eq!(desk.files(), 0);
}

#[test]
fn a_plan_off_sale_is_listed_only_with_all() {
    let desk = Desk::new();
    desk.admin(STARTER).success();
    let activate = ["plan", "activate", "starter", "--chain-id", "1"];
    let text = desk.admin(&[&activate[..], &["--off"]].concat()).success().stdout;
    assert_eq!(text, "Plan starter on chain 1 is off sale.\n");
    assert_eq!(desk.admin(&["plan", "list"]).success().stdout.lines().count(), 1);
    let all = desk.admin(&["plan", "list", "--all"]).success().stdout;
    assert!(all.lines().nth(1).unwrap().contains("123456789.12345678"), "{all}");
    assert_eq!(desk.json::<Value>(&["plan", "list"])["plans"], Value::Array(Vec::new()));
    desk.admin(&activate).success();
    assert_eq!(desk.json::<Value>(&["plan", "list"])["plans"][0]["active"], true);
}

#[test]
fn a_plan_that_does_not_exist_is_not_found() {
    let desk = Desk::new();
    desk.admin(STARTER).success();
    for command in ["remove", "activate"] {
        for (id, chain) in [("starter", "2"), ("other", "1")] {
            let message = desk.admin(&["plan", command, id, "--chain-id", chain]).failure(4);
            assert!(message.contains(&format!("no plan {id} on chain {chain}")), "{message}");
        }
    }
    assert_eq!(ids(&desk), ["starter"]);
    desk.admin(&["plan", "remove", "starter", "--chain-id", "1"]).success();
    assert!(ids(&desk).is_empty());
}

#[test]
fn plans_are_imported_from_an_array_an_object_or_standard_input() {
    let desk = Desk::new();
    let (a, b) = (plan_json("a", "1281023894.00760775"), plan_json("b", "2"));
    fs::write(desk.path("array.json"), format!("[{a},{b}]")).unwrap();
    assert_eq!(desk.json::<Value>(&["plan", "import", "array.json"])["imported"], 2);
    let exact = desk.admin(&["plan", "list", "--json"]).success().stdout;
    assert!(exact.contains("\"credits\":1281023894.00760775,"), "{exact}");
    let object = format!("{{\"plans\":[{},{}]}}", plan_json("b", "3"), plan_json("c", "4"));
    let ran = desk.admin_reading(&["plan", "import", "-"], &object).success();
    assert_eq!(ran.stdout, "2 plans imported.\n");
    assert_eq!(ids(&desk), ["a", "b", "c"], "plans that the file does not mention stay");
    assert_eq!(desk.json::<Value>(&["plan", "list"])["plans"][1]["credits"], 3, "plans that it mentions are replaced");
}

#[test]
fn what_list_prints_import_reads() {
    let (desk, other) = (Desk::new(), Desk::new());
    desk.admin(STARTER).success();
    let file = format!("[{}]", plan_json("a", "0.00000001"));
    desk.admin_reading(&["plan", "import", "-"], &file).success();
    let list = desk.admin(&["plan", "list", "--all", "--json"]).success().stdout;
    other.admin_reading(&["plan", "import", "-"], &list).success();
    assert_eq!(other.admin(&["plan", "list", "--all", "--json"]).success().stdout, list);
}

#[test]
fn one_bad_plan_keeps_all_of_them_out() {
    let desk = Desk::new();
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
        let message = desk.admin_reading(&["plan", "import", "-"], file).failure(1);
        assert!(message.contains(expected) && message.contains("nothing was imported"), "{file}: {message}");
        assert_eq!(desk.files(), 0, "a refused file leaves no store behind");
    }
    desk.admin(STARTER).success();
    for (file, _) in &table {
        desk.admin_reading(&["plan", "import", "-"], file).failure(1);
    }
    assert_eq!(ids(&desk), ["starter"]);
}

#[test]
fn a_file_that_cannot_be_read_is_a_failure() {
    let desk = Desk::new();
    let missing = text_of(&desk.path("missing.json"));
    let message = desk.admin(&["plan", "import", &missing]).failure(1);
    assert!(message.contains(&missing), "{message}");
    fs::write(desk.path("latin1.json"), [b'[', 0xe4, b']']).unwrap();
    desk.admin(&["plan", "import", "latin1.json"]).failure(1);
}
