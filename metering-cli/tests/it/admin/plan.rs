//! Plans: set, listed, on sale or not, imported all or none.

use serde_json::Value;

use super::failed;
use crate::program::Program;

const STARTER: &str = "plan set starter --chain-id 1 --label Starter --credits 123456789.12345678 \
                       --payment-kind native_value --token-symbol ETH --token-amount 0.0025 --token-decimals 18";

/// An empty directory, in which `$starter` sets a plan.
fn program() -> Program {
    let program = Program::without_store();
    program.call("recipient", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed");
    program
}

fn with_starter() -> Program {
    let program = program();
    program.run(STARTER).success();
    program
}

fn plan_json(id: &str, credits: &str) -> String {
    format!(
        r#"{{"id":"{id}","chain_id":1,"token_symbol":"USDC","payment_kind":"erc20","credits":{credits},
            "token_amount":"5","token_decimals":6,"label":"{id}",
            "token_contract":"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"}}"#
    )
}

fn ids(program: &Program) -> Vec<String> {
    let list: Value = program.json("plan list --all");
    list["plans"].as_array().unwrap().iter().map(|plan| plan["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn plan_is_created_with_defaults_and_changed_by_field() {
    let program = program();
    assert_eq!(program.run(STARTER).success(), "Plan starter on chain 1 was saved and is on sale.\n");
    let set = "plan set starter --chain-id 1 --offer Spring --discount-percent 20 --bonus-credits 0.5 --sort-order -3 \
               --recipient $recipient";
    program.prints(&[(&format!("{set} --json"), &["\"credits\":123456789.12345678,\"bonus_credits\":0.5,"])]);
    let set_again = [
        ("/offer", "\"Spring\""),
        ("/discount_percent", "20"),
        ("/sort_order", "-3"),
        ("/label", "\"Starter\""),
        ("/token_amount", "\"0.0025\""),
        ("/recipient", "\"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed\""),
    ];
    let clear = "plan set starter --chain-id 1 --clear offer --clear discount-percent --clear recipient --active false";
    let cleared = [
        ("/offer", ""),
        ("/discount_percent", ""),
        ("/recipient", ""),
        ("/active", "false"),
        ("/bonus_credits", "0.5"),
    ];
    program.documents(&[(set, &set_again), (clear, &cleared)]);
}

#[test]
fn invalid_plan_is_rejected_and_creates_no_store() {
    let program = program();
    // options on top of the valid ones, what the message contains
    for (options, expected) in [
        ("--bonus-credits -1", "bonus_credits must not be negative"),
        ("--token-contract 0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48", "token_contract"),
        ("--token-contract 0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB49", "EIP-55"),
        ("--token-contract zero", "0x followed by 40"),
        ("--discount-percent 100", "discount_percent must be below 100"),
        ("--discount-percent 300", "--discount-percent"),
        ("--clear label", "--clear"),
    ] {
        program.refuses(&[(&format!("{STARTER} {options}"), 2, expected)]);
    }
    program.refuses(&[
        ("plan set starter --chain-id 1 --label x", 2, "needs --token-symbol"),
        ("plan set starter", 2, "--chain-id"),
    ]);
    assert_eq!(program.files(), 0);
}

#[test]
fn inactive_plan_is_listed_only_with_all() {
    let program = with_starter();
    let text = program.run("plan activate starter --chain-id 1 --off").success();
    assert_eq!(text, "Plan starter on chain 1 is off sale.\n");
    assert!(program.rows("plan list").is_empty() && program.count("plan list", "plans") == 0);
    assert!(program.rows("plan list --all")[0].contains("123456789.12345678"));
    program.run("plan activate starter --chain-id 1").success();
    program.documents(&[("plan list", &[("/plans/0/active", "true")])]);
}

#[test]
fn a_plan_that_does_not_exist_is_not_found() {
    let program = with_starter();
    program.refuses(&[
        ("plan remove starter --chain-id 2", 4, "no plan starter on chain 2"),
        ("plan remove other --chain-id 1", 4, "no plan other on chain 1"),
        ("plan activate starter --chain-id 2", 4, "no plan starter on chain 2"),
        ("plan activate other --chain-id 1", 4, "no plan other on chain 1"),
    ]);
    assert_eq!(ids(&program), ["starter"]);
    program.run("plan remove starter --chain-id 1").success();
    assert!(ids(&program).is_empty());
}

#[test]
fn plans_are_imported_from_an_array_an_object_or_standard_input() {
    let program = program();
    program.write("array.json", format!("[{},{}]", plan_json("a", "1281023894.00760775"), plan_json("b", "2")));
    program.documents(&[("plan import array.json", &[("/imported", "2")])]);
    program.prints(&[("plan list --json", &["\"credits\":1281023894.00760775,"])]);
    let object = format!("{{\"plans\":[{},{}]}}", plan_json("b", "3"), plan_json("c", "4"));
    assert_eq!(program.reading("plan import -", &object).success(), "2 plans imported.\n");
    assert_eq!(ids(&program), ["a", "b", "c"], "plans that the file does not mention stay");
    program.documents(&[("plan list", &[("/plans/1/credits", "3")])]);
    // The output of `list` can be imported.
    let list = program.run("plan list --all --json").success();
    let other = self::program();
    other.reading("plan import -", &list).success();
    assert_eq!(other.run("plan list --all --json").success(), list);
}

#[test]
fn plans_for_chains_that_the_configuration_lacks_are_named() {
    let program = program();
    program.write("plans.json", format!("[{}]", plan_json("a", "1")));
    for (id, noted) in [(1, false), (8453, true)] {
        let chain = format!("[chains.base]\nchain_id = {id}\nrecipient = \"$recipient\"\n");
        program.write("metering.toml", program.text(&chain));
        let ran = program.run("plan import plans.json --config metering.toml").expect(0);
        let note = "metering.toml has no chain with chain_id = 1; until it has one, nobody can buy 1 of";
        assert_eq!(ran.stderr.contains(note), noted, "{ran:?}");
    }
}

#[test]
fn one_invalid_plan_rejects_the_whole_import() {
    let program = program();
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
    let refuse = |(file, expected): &(String, &str)| {
        let message = failed(program.reading("plan import -", file), 1);
        assert!(message.contains(expected) && message.contains("nothing was imported"), "{file}: {message}");
    };
    table.iter().for_each(refuse);
    assert_eq!(program.files(), 0, "a refused file leaves no store behind");
    program.run(STARTER).success();
    table.iter().for_each(refuse);
    assert_eq!(ids(&program), ["starter"]);
    program.write("latin1.json", [b'[', 0xe4, b']']);
    program.refuses(&[("plan import missing.json", 1, "missing.json"), ("plan import latin1.json", 1, "latin1.json")]);
}
