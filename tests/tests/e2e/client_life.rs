//! The whole life of the command-line client as its user sees it: what is typed, what is printed, and what the server's
//! books say, to the atom.

mod failures;
mod terminal;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use metering_tests::chain::Chain;
use metering_tests::client::Client;
use serde_json::{Value, json};

use crate::market::{COIN, Kind, Market, STARTER};
use crate::mcp::{BASE_TOOL, expected_tools};
use crate::pages::{play, with_browser};
use crate::signup::{approve, solution};
use crate::wire::{BASE, BASE_CALL, CREDIT, STREAM, amount, balance};
use terminal::{Running, Terminal, Typed};

const ETH_PRICE: &str = "/mpp/ethPrice";
/// The price of one such call.
const ETH_PRICE_CALL: i64 = 5 * BASE_CALL;
/// The price of one connection to the stream.
const STREAM_CONNECTION: i64 = 72 * BASE_CALL;

/// A user at a terminal, and the expected totals in the books.
struct Person<'a> {
    market: &'a Market,
    terminal: Terminal,
    atoms: i64,
    calls: u64,
}

impl Person<'_> {
    fn client(&self) -> Client {
        self.market.server.client_with(&self.terminal.key("default"))
    }

    /// Adds `calls` requests at a total cost of `atoms`, and checks that client and server agree.
    #[track_caller]
    fn spent(&mut self, calls: u64, atoms: i64, told: &str) {
        self.calls += calls;
        self.atoms -= atoms;
        assert_eq!(balance(&self.client()), amount(self.atoms));
        assert!(told.contains(&amount(self.atoms)), "the balance {} in {told}", amount(self.atoms));
    }
}

#[test]
fn the_whole_life_of_the_client() {
    let more = "[signup]\naltcha_cost = 2\npoll_interval = '1s'\n[sample]\nblock_time = '500ms'\n";
    let Some(market) = Market::with(Chain::setup(), "1", more) else { return };
    let url = format!("http://{}", market.server.address());
    let terminal = Terminal::new(market.site.path("home")).set("METERING_CLIENT_URL", &url);
    signs_up_in_the_browser(&market, &terminal);
    let mut person = Person { market: &market, terminal: terminal.clone(), atoms: 2 * CREDIT, calls: 0 };
    calls(&mut person);
    catches_up(&mut person);
    streams(&mut person);
    looks_at_balance_and_usage(&person);
    pays_and_rotates(&market, &terminal);
    serves_tools(&mut person);
    let profiles = terminal.json(&["config", "list"]);
    let names: Vec<_> = profiles.as_array().unwrap().iter().map(|profile| profile["profile"].clone()).collect();
    assert_eq!(names, ["default", "paid"]);
    for key in [terminal.key("default"), terminal.key("paid")] {
        assert!(!market.server.log().contains(&key), "no key in the log");
    }
    market.site.verify();
}

fn signs_up_in_the_browser(market: &Market, terminal: &Terminal) {
    let (email, agent) = ("name@example.com", "my-agent");
    // The first attempt is interrupted, and the second continues with the same code.
    let first = terminal.begin(&["signup", "--email", email, "--agent-name", agent]);
    let code = the_code(&first);
    let _ = first.told("Waiting");
    first.interrupt();
    let interrupted = first.finish();
    assert_eq!(interrupted.code, Some(130), "{interrupted:?}");
    assert!(interrupted.stderr.contains("metering signup"), "{interrupted:?}");
    let second = terminal.begin(&["signup"]);
    assert_eq!(the_code(&second), code);
    if with_browser() {
        let seen = json!({"url": format!("http://{}/verify?code={code}", market.server.address()),
            "email": email, "agent": agent});
        play("approve", &market.server, seen);
    } else {
        let client = market.server.client();
        let _ = approve(&client, &code, &solution(&client)).expect(200);
    }
    let done = second.finish();
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.stdout.contains("org_"), "{done:?}");
    let key = terminal.key("default");
    assert!(!done.stdout.contains(&key) && !done.stderr.contains(&key), "the key is stored, not shown");
    is_private(&terminal.profile("default"));
    assert_eq!(market.balance(&key), amount(2 * CREDIT));
}

/// The code in the displayed URL.
#[track_caller]
fn the_code(signup: &Running) -> String {
    let line = signup.told("/verify?code=");
    line.split_once("code=").unwrap().1.trim().to_owned()
}

#[cfg(unix)]
fn is_private(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", file.display());
}

#[cfg(not(unix))]
fn is_private(_: &Path) {}

fn calls(person: &mut Person<'_>) {
    let called = person.terminal.good(&["call", ETH_PRICE]);
    let answer: Value = serde_json::from_str(&called.stdout).unwrap();
    assert_eq!(answer["sample"], true, "{answer}");
    assert!(called.stderr.contains(&format!("Charged {} credits", amount(ETH_PRICE_CALL))), "{called:?}");
    person.spent(1, ETH_PRICE_CALL, &called.stderr);
    // A parameter is filled into the path, and the call costs that route's price.
    let block = format!("block_number={}", answer["block_number"]);
    let called = person.terminal.good(&["call", "/mpp/ethPrice/{block_number}", "--param", &block]);
    assert_eq!(serde_json::from_str::<Value>(&called.stdout).unwrap()["block_number"], answer["block_number"]);
    person.spent(1, 2 * ETH_PRICE_CALL, &called.stderr);
    let quiet = person.terminal.good(&["call", BASE, "--quiet"]);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
    person.spent(1, BASE_CALL, &amount(person.atoms - BASE_CALL));
}

fn catches_up(person: &mut Person<'_>) {
    let file = person.market.site.path("blocks.jsonl");
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
    let numbers = numbers_in(&file);
    assert_eq!(numbers.first(), first["last_block"].as_u64().as_ref());
    assert_eq!(numbers.last(), third["last_block"].as_u64().as_ref());
    is_gapless(&numbers);
    // From far back: a run takes a hundred blocks, and the next run continues there.
    let (early, from) = (person.market.site.path("early.jsonl"), numbers[0] - 150);
    let (output, from_text) = (early.to_str().unwrap().to_owned(), from.to_string());
    let first = catch_up(person, &["--reset", "--from", &from_text, "--output", &output]);
    assert_eq!((&first["written"], &first["last_block"]), (&json!(100), &json!(from + 99)), "{first}");
    let second = catch_up(person, &["--output", &output, "--max-blocks", "20"]);
    assert_eq!((&second["written"], &second["first_block"]), (&json!(20), &json!(from + 100)), "{second}");
    let numbers = numbers_in(&early);
    assert_eq!((numbers[0], numbers.len()), (from, 120));
    is_gapless(&numbers);
}

/// Runs it and checks its cost: one request per block, and one for the latest block, which is not fetched again.
#[track_caller]
fn catch_up(person: &mut Person<'_>, args: &[&str]) -> Value {
    let typed = person.terminal.good(&[&["catch-up", "--json"], args].concat());
    let summary: Value = serde_json::from_str(&typed.stdout).unwrap();
    let written = summary["written"].as_u64().unwrap();
    let reached = u64::from(written > 0 && summary["remaining"] == 0);
    let requests = 1 + written - reached;
    person.spent(requests, i64::try_from(requests).unwrap() * BASE_CALL, &typed.stderr);
    assert!(typed.stdout.contains(&format!("\"credit_balance\":{}", amount(person.atoms))), "{typed:?}");
    summary
}

fn numbers_in(file: &Path) -> Vec<u64> {
    let text = std::fs::read_to_string(file).unwrap();
    let number = |line: &str| serde_json::from_str::<Value>(line).unwrap()["block_number"].as_u64().unwrap();
    text.lines().map(number).collect()
}

#[track_caller]
fn is_gapless(numbers: &[u64]) {
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
}

fn streams(person: &mut Person<'_>) {
    let streamed = person.terminal.good(&["stream", STREAM, "--max-events", "3"]);
    let events: Vec<Value> = streamed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3, "{streamed:?}");
    assert!(events.iter().all(|event| event["sample"] == true), "{events:?}");
    assert!(streamed.stderr.contains("3 events"), "{streamed:?}");
    person.spent(1, STREAM_CONNECTION, &streamed.stderr);
}

fn looks_at_balance_and_usage(person: &Person<'_>) {
    let (left, used) = (amount(person.atoms), amount(2 * CREDIT - person.atoms));
    let shown = person.terminal.good(&["balance"]);
    for part in [&left, &used, "my-agent", "name@example.com"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    // With `--json`, the server's own documents byte for byte.
    let client = person.client();
    let same = |args: &[&str], target: &str| {
        let printed = person.terminal.good(args).stdout;
        assert_eq!(printed.trim_end(), client.get(target).expect(200).text().trim_end());
    };
    same(&["balance", "--json"], "/credits/balance");
    same(&["usage", "--json", "--days", "2"], "/credits/usage/summary?days=2");
    same(&["usage", "--json", "--activity", "--limit", "500"], "/credits/usage?limit=500");
    let summary = client.get("/credits/usage/summary?days=2").expect(200).json();
    assert_eq!(summary["totals"]["usage_events"], person.calls, "{summary}");
    let shown = person.terminal.good(&["usage", "--days", "2"]).stdout;
    for part in [&left, &used, &person.calls.to_string(), ETH_PRICE, STREAM, "/mpp/snapshot/allTrades/{block_number}"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains('#') && !shown.contains('\u{1b}'), "bars, but no colours without a terminal: {shown}");
    let activity = client.get("/credits/usage?limit=500").expect(200).json();
    let mut used = activity["transactions"].as_array().unwrap().iter().filter(|entry| entry["type"] == "usage");
    assert!(used.all(|entry| entry["client_source"] == "cli"), "{activity}");
}

fn pays_and_rotates(market: &Market, terminal: &Terminal) {
    let (chain, wallet) = (&market.chain, market.customer());
    let terminal = terminal.clone().set("METERING_CLIENT_PROFILE", "paid").set("METERING_CLIENT_RPC_URL", &chain.url());
    let terminal = terminal.set("METERING_CLIENT_WALLET_KEY", wallet.private_key());
    let hides = |typed: &Typed| {
        for secret in [&wallet.private_key()[2..], "sk_live_", "sqn_"] {
            assert!(!typed.stdout.contains(secret) && !typed.stderr.contains(secret), "{typed:?}");
        }
    };
    let coins = || u128::from_str_radix(&coins_of(chain, &market.recipient.address())[2..], 16).unwrap();
    let tokens =
        || -> u128 { chain.wallet().token_balance(&market.token, &market.recipient.address()).parse().unwrap() };

    let shown = terminal.good(&["plans"]).stdout;
    assert!(shown.contains("starter") && shown.contains("5 USDC") && shown.contains("0.0025 ETH"), "{shown}");
    let paid = terminal.good(&["signup-pay", "--plan", "starter", "--agent-name", "payer", "--yes"]);
    hides(&paid);
    // Ten credits, a bonus of a half, and the two free ones.
    let atoms = 12 * CREDIT + CREDIT / 2;
    assert!(paid.stdout.contains(&amount(atoms)), "{paid:?}");
    assert_eq!(market.balance(&terminal.key("paid")), amount(atoms));
    let tagged = tokens();
    assert!(tagged > STARTER && tagged <= STARTER + 10_000, "the price and a tag: {tagged}");
    is_private(&terminal.profile("paid"));

    let before = coins();
    let credited = terminal.json(&["topup", "--plan", Kind::Native.plan(), "--yes"]);
    assert_eq!(credited["amount_added"].to_string(), Kind::Native.credits(), "{credited}");
    assert_eq!(coins() - before, COIN);
    let atoms = atoms + 4 * CREDIT;
    assert_eq!(market.balance(&terminal.key("paid")), amount(atoms));
    assert_eq!(chain.rpc("eth_getTransactionCount", json!([wallet.address(), "latest"])), "0x2", "each paid once");

    let old = terminal.key("paid");
    let rotated = terminal.good(&["rotate", "--yes"]);
    hides(&rotated);
    let refused = terminal.clone().set("METERING_CLIENT_API_KEY", &old).run(&["balance"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(6), ""), "{refused:?}");
    assert!(terminal.good(&["balance"]).stdout.contains(&amount(atoms)));
    assert_ne!(terminal.key("paid"), old);
}

fn coins_of(chain: &Chain, address: &str) -> String {
    chain.rpc("eth_getBalance", json!([address, "latest"])).as_str().unwrap().to_owned()
}

fn serves_tools(person: &mut Person<'_>) {
    let mut server = person.terminal.begin(&["mcp"]);
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "1"}});
    let welcome = ask(&mut server, 1, "initialize", &hello);
    assert!(welcome["capabilities"]["tools"].is_object(), "{welcome}");
    server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let listed = ask(&mut server, 2, "tools/list", &json!({}));
    let names: BTreeSet<_> = listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].to_string()).collect();
    let own = ["get_credit_balance", "list_plans"].map(str::to_owned);
    let expected = expected_tools().into_iter().map(|tool| tool.name).chain(own);
    assert_eq!(names, expected.map(|name| format!("\"{name}\"")).collect());
    let called = ask(&mut server, 3, "tools/call", &json!({"name": BASE_TOOL, "arguments": {}}));
    assert_ne!(called["isError"], true, "{called}");
    person.spent(1, BASE_CALL, called["content"][0]["text"].as_str().unwrap());
    let ended = server.finish();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// Sends a request over standard input, and returns its result.
#[track_caller]
fn ask(server: &mut Running, id: u32, method: &str, params: &Value) -> Value {
    server.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    let mut answer: Value = serde_json::from_str(&server.line()).unwrap();
    assert_eq!((&answer["id"], &answer["error"]), (&json!(id), &Value::Null), "{answer}");
    answer["result"].take()
}
