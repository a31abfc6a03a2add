//! The whole life of the command-line client as its user sees it: what is typed, what is printed, and what the server's
//! books say, to the atom.

mod failures;
pub(super) mod terminal;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::client::Client;
use serde_json::{Value, json};

use crate::mcp::{BASE_TOOL, expected_tools};
use crate::pages::{play, with_browser};
use crate::signup::{approve, solution};
use crate::support::shop::{COIN, Kind, STARTER, Shop};
use crate::support::wire::{BASE, BASE_CALL, CREDIT, STREAM, amount, balance};
use terminal::{CommandOutput, Running, Terminal};

const ETH_PRICE: &str = "/mpp/ethPrice";
/// The price of one such call.
const ETH_PRICE_CALL: i64 = 5 * BASE_CALL;
/// The price of one connection to the stream.
const STREAM_CONNECTION: i64 = 72 * BASE_CALL;

/// A user at a terminal, and the expected totals in the books.
struct Person<'a> {
    shop: &'a Shop,
    terminal: Terminal,
    atoms: i64,
    calls: u64,
}

impl Person<'_> {
    fn client(&self) -> Client {
        self.shop.server.client_with(&self.terminal.key("default"))
    }

    /// Adds `calls` requests at a total cost of `atoms`, and checks that client and server agree.
    #[track_caller]
    fn record_spending(&mut self, calls: u64, atoms: i64, printed: &str) {
        self.calls += calls;
        self.atoms -= atoms;
        assert_eq!(balance(&self.client()), amount(self.atoms));
        assert!(printed.contains(&amount(self.atoms)), "the balance {} in {printed}", amount(self.atoms));
    }
}

#[test]
fn client_from_signup_to_rotation() {
    let more = "[signup]\naltcha_cost = 2\npoll_interval = '1s'\n[sample]\nblock_time = '500ms'\n";
    let Some(shop) = Shop::with(Chain::setup(), "1", more) else { return };
    let url = format!("http://{}", shop.server.address());
    let terminal = Terminal::new(shop.site.path("home")).set("METERING_CLIENT_URL", &url);
    sign_up_in_browser(&shop, &terminal);
    let mut person = Person { shop: &shop, terminal: terminal.clone(), atoms: 2 * CREDIT, calls: 0 };
    calls(&mut person);
    run_catch_ups(&mut person);
    read_stream(&mut person);
    check_balance_and_usage(&person);
    pay_and_rotate(&shop, &terminal);
    serve_tools(&mut person);
    let profiles = terminal.json(&["config", "list"]);
    let names: Vec<_> = profiles.as_array().unwrap().iter().map(|profile| profile["profile"].clone()).collect();
    assert_eq!(names, ["default", "paid"]);
    for key in [terminal.key("default"), terminal.key("paid")] {
        assert!(!shop.server.log().contains(&key), "no key in the log");
    }
}

fn sign_up_in_browser(shop: &Shop, terminal: &Terminal) {
    let (email, agent) = ("name@example.com", "my-agent");
    // The first attempt is interrupted, and the second continues with the same code.
    let first = terminal.spawn(&["signup", "--email", email, "--agent-name", agent]);
    let code = displayed_code(&first);
    let _ = first.wait_for_stderr("Waiting");
    first.interrupt();
    let interrupted = first.finish();
    assert_eq!(interrupted.code, Some(130), "{interrupted:?}");
    assert!(interrupted.stderr.contains("metering signup"), "{interrupted:?}");
    let second = terminal.spawn(&["signup"]);
    assert_eq!(displayed_code(&second), code);
    if with_browser() {
        let seen = json!({"url": format!("http://{}/verify?code={code}", shop.server.address()),
            "email": email, "agent": agent});
        play("approve", &shop.server, seen);
    } else {
        let client = shop.server.client();
        let _ = approve(&client, &code, &solution(&client)).expect(200);
    }
    let done = second.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("org_"), "{done:?}");
    let key = terminal.key("default");
    assert!(!done.stdout.contains(&key) && !done.stderr.contains(&key), "the key is stored, not shown");
    assert_private(&terminal.profile("default"));
    assert_eq!(shop.balance(&key), amount(2 * CREDIT));
}

/// The code in the displayed URL.
#[track_caller]
fn displayed_code(signup: &Running) -> String {
    let line = signup.wait_for_stderr("/verify?code=");
    line.split_once("code=").unwrap().1.trim().to_owned()
}

#[cfg(unix)]
fn assert_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", file.display());
}

#[cfg(not(unix))]
fn assert_private(_: &Path) {}

fn calls(person: &mut Person<'_>) {
    let called = person.terminal.run_successfully(&["call", ETH_PRICE]);
    let response: Value = serde_json::from_str(&called.stdout).unwrap();
    assert_eq!(response["sample"], true, "{response}");
    assert!(called.stderr.contains(&format!("Charged {} credits", amount(ETH_PRICE_CALL))), "{called:?}");
    person.record_spending(1, ETH_PRICE_CALL, &called.stderr);
    // A parameter is filled into the path, and the call costs that route's price.
    let block = format!("block_number={}", response["block_number"]);
    let called = person.terminal.run_successfully(&["call", "/mpp/ethPrice/{block_number}", "--param", &block]);
    assert_eq!(serde_json::from_str::<Value>(&called.stdout).unwrap()["block_number"], response["block_number"]);
    person.record_spending(1, 2 * ETH_PRICE_CALL, &called.stderr);
    let quiet = person.terminal.run_successfully(&["call", BASE, "--quiet"]);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
    person.record_spending(1, BASE_CALL, &amount(person.atoms - BASE_CALL));
}

fn run_catch_ups(person: &mut Person<'_>) {
    let file = person.shop.site.path("blocks.jsonl");
    let output = file.to_str().unwrap().to_owned();
    // Without a cursor, only the latest block.
    let first = catch_up(person, &["--output", &output]);
    assert_eq!((&first["written"], &first["remaining"]), (&json!(1), &json!(0)), "{first}");
    // Wait until there are more blocks to catch up with than one run may take.
    std::thread::sleep(Duration::from_millis(2_200));
    let second = catch_up(person, &["--output", &output, "--max-blocks", "3"]);
    assert_eq!(second["written"], 3, "{second}");
    let third = catch_up(person, &["--output", &output]);
    assert_eq!(third["remaining"], 0, "{third}");
    let numbers = block_numbers(&file);
    assert_eq!(numbers.first(), first["last_block"].as_u64().as_ref());
    assert_eq!(numbers.last(), third["last_block"].as_u64().as_ref());
    assert_gapless(&numbers);
    // From far back: a run takes a hundred blocks, and the next run continues there.
    let (early, from) = (person.shop.site.path("early.jsonl"), numbers[0] - 150);
    let (output, from_text) = (early.to_str().unwrap().to_owned(), from.to_string());
    let first = catch_up(person, &["--reset", "--from", &from_text, "--output", &output]);
    assert_eq!((&first["written"], &first["last_block"]), (&json!(100), &json!(from + 99)), "{first}");
    let second = catch_up(person, &["--output", &output, "--max-blocks", "20"]);
    assert_eq!((&second["written"], &second["first_block"]), (&json!(20), &json!(from + 100)), "{second}");
    let numbers = block_numbers(&early);
    assert_eq!((numbers[0], numbers.len()), (from, 120));
    assert_gapless(&numbers);
}

/// Runs it and checks its cost: one request per block, and one for the latest block, which is not fetched again.
#[track_caller]
fn catch_up(person: &mut Person<'_>, args: &[&str]) -> Value {
    let output = person.terminal.run_successfully(&[&["catch-up", "--json"], args].concat());
    let summary: Value = serde_json::from_str(&output.stdout).unwrap();
    let written = summary["written"].as_u64().unwrap();
    let reached = u64::from(written > 0 && summary["remaining"] == 0);
    let requests = 1 + written - reached;
    person.record_spending(requests, i64::try_from(requests).unwrap() * BASE_CALL, &output.stderr);
    assert!(output.stdout.contains(&format!("\"credit_balance\":{}", amount(person.atoms))), "{output:?}");
    summary
}

fn block_numbers(file: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap();
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["block_number"].as_u64().unwrap();
    text.lines().map(number).collect()
}

#[track_caller]
fn assert_gapless(numbers: &[u64]) {
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
}

fn read_stream(person: &mut Person<'_>) {
    let streamed = person.terminal.run_successfully(&["stream", STREAM, "--max-events", "3"]);
    let events: Vec<Value> = streamed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3, "{streamed:?}");
    assert!(events.iter().all(|event| event["sample"] == true), "{events:?}");
    assert!(streamed.stderr.contains("3 events"), "{streamed:?}");
    person.record_spending(1, STREAM_CONNECTION, &streamed.stderr);
}

fn check_balance_and_usage(person: &Person<'_>) {
    let (left, used) = (amount(person.atoms), amount(2 * CREDIT - person.atoms));
    let shown = person.terminal.run_successfully(&["balance"]);
    for part in [&left, &used, "my-agent", "name@example.com"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    // With `--json`, the server's own documents byte for byte.
    let client = person.client();
    let same = |args: &[&str], target: &str| {
        let printed = person.terminal.run_successfully(args).stdout;
        assert_eq!(printed.trim_end(), client.get(target).expect(200).text().trim_end());
    };
    same(&["balance", "--json"], "/credits/balance");
    same(&["usage", "--json", "--days", "2"], "/credits/usage/summary?days=2");
    same(&["usage", "--json", "--activity", "--limit", "500"], "/credits/usage?limit=500");
    let summary = client.get("/credits/usage/summary?days=2").expect(200).json();
    assert_eq!(summary["totals"]["usage_events"], person.calls, "{summary}");
    let shown = person.terminal.run_successfully(&["usage", "--days", "2"]).stdout;
    for part in [&left, &used, &person.calls.to_string(), ETH_PRICE, STREAM, "/mpp/snapshot/allTrades/{block_number}"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains('#') && !shown.contains('\u{1b}'), "bars, but no colours without a terminal: {shown}");
    let activity = client.get("/credits/usage?limit=500").expect(200).json();
    let mut used = activity["transactions"].as_array().unwrap().iter().filter(|entry| entry["type"] == "usage");
    assert!(used.all(|entry| entry["client_source"] == "cli"), "{activity}");
}

fn pay_and_rotate(shop: &Shop, terminal: &Terminal) {
    let (chain, wallet) = (&shop.chain, shop.customer());
    let terminal = terminal.clone().set("METERING_CLIENT_PROFILE", "paid").set("METERING_CLIENT_RPC_URL", &chain.url());
    let terminal = terminal.set("METERING_CLIENT_WALLET_KEY", wallet.private_key());
    let assert_hidden = |output: &CommandOutput| {
        for secret in [&wallet.private_key()[2..], "sk_live_", "sqn_"] {
            assert!(!output.stdout.contains(secret) && !output.stderr.contains(secret), "{output:?}");
        }
    };
    let coins = || u128::from_str_radix(&coin_balance(chain, &shop.recipient.address())[2..], 16).unwrap();
    let tokens = || -> u128 { chain.wallet().token_balance(&shop.token, &shop.recipient.address()).parse().unwrap() };

    let shown = terminal.run_successfully(&["plans"]).stdout;
    assert!(shown.contains("starter") && shown.contains("5 USDC") && shown.contains("0.0025 ETH"), "{shown}");
    let paid = terminal.run_successfully(&["signup-pay", "--plan", "starter", "--agent-name", "payer", "--yes"]);
    assert_hidden(&paid);
    // Ten credits, a bonus of a half, and the two free ones.
    let atoms = 12 * CREDIT + CREDIT / 2;
    assert!(paid.stdout.contains(&amount(atoms)), "{paid:?}");
    assert_eq!(shop.balance(&terminal.key("paid")), amount(atoms));
    let tagged = tokens();
    assert!(tagged > STARTER && tagged <= STARTER + 10_000, "the price and a tag: {tagged}");
    assert_private(&terminal.profile("paid"));

    let before = coins();
    let credited = terminal.json(&["topup", "--plan", Kind::Native.plan(), "--yes"]);
    assert_eq!(credited["amount_added"].to_string(), Kind::Native.credits(), "{credited}");
    assert_eq!(coins() - before, COIN);
    let atoms = atoms + 4 * CREDIT;
    assert_eq!(shop.balance(&terminal.key("paid")), amount(atoms));
    assert_eq!(chain.rpc("eth_getTransactionCount", json!([wallet.address(), "latest"])), "0x2", "each paid once");

    let old = terminal.key("paid");
    let rotated = terminal.run_successfully(&["rotate", "--yes"]);
    assert_hidden(&rotated);
    let refused = terminal.clone().set("METERING_CLIENT_API_KEY", &old).run(&["balance"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(6), ""), "{refused:?}");
    assert!(terminal.run_successfully(&["balance"]).stdout.contains(&amount(atoms)));
    assert_ne!(terminal.key("paid"), old);
}

fn coin_balance(chain: &Chain, address: &str) -> String {
    chain.rpc("eth_getBalance", json!([address, "latest"])).as_str().unwrap().to_owned()
}

fn serve_tools(person: &mut Person<'_>) {
    let mut server = person.terminal.spawn(&["mcp"]);
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}});
    let welcome = request(&mut server, 1, "initialize", &hello);
    assert!(welcome["capabilities"]["tools"].is_object(), "{welcome}");
    server.type_line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let listed = request(&mut server, 2, "tools/list", &json!({}));
    let names: BTreeSet<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].to_string()).collect();
    let own = ["get_credit_balance", "list_plans"].map(str::to_owned);
    let expected = expected_tools().into_iter().map(|tool| tool.name).chain(own);
    assert_eq!(names, expected.map(|name| format!("\"{name}\"")).collect());
    let called = request(&mut server, 3, "tools/call", &json!({"name": BASE_TOOL, "arguments": {}}));
    assert_ne!(called["isError"], true, "{called}");
    person.record_spending(1, BASE_CALL, called["content"][0]["text"].as_str().unwrap());
    let ended = server.finish();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Sends a request over standard input, and returns its result.
#[track_caller]
fn request(server: &mut Running, id: u32, method: &str, params: &Value) -> Value {
    server.type_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    let mut response: Value = serde_json::from_str(&server.line()).unwrap();
    assert_eq!((&response["id"], &response["error"]), (&json!(id), &Value::Null), "{response}");
    response["result"].take()
}
