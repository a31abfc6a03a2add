//! `metering admin --server` next to `metering admin` on the store: the same output and exit codes, and on a chain that
//! only the server can read.

use std::net::SocketAddr;

use metering_tests::chain::Chain;
use metering_tests::command::ProgramOutput;
use metering_tests::ports::free_address;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::administration::Console;
use crate::support::shop::{Kind, STARTER, Shop};
use crate::support::wait::until;

/// A chain that the server cannot read.
const QUIET: &str = "[chains.quiet]\nchain_id = 1\nrecipient = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'";

/// Asserts that both printed the same, successfully.
#[track_caller]
fn same(remote: &ProgramOutput, local: &ProgramOutput, what: &[&str]) {
    assert_eq!((remote.code, &remote.stderr), (local.code, &local.stderr), "{what:?}");
    assert_eq!(remote.stdout, local.stdout, "{what:?}");
}

#[test]
fn keys_are_managed_through_a_server_as_in_its_store() {
    let console = Console::start();
    let (org, first) = console.account("keys", 5);
    let because = |args: &[&str]| console.remote(&[&["--reason", "Ticket 311"], args].concat());
    let document = |output: ProgramOutput| -> Value {
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    };
    let new = ["key", "create", &org, "--name", "batch", "--limit", "1.5", "--limit-reset", "weekly", "--json"];
    let made = document(because(&new));
    let (id, secret) = (made["data"]["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let _ = console.server.client_with(secret).get("/mpp/ethPrice").expect(200);
    let _ = console.server.client_with(&first).get("/mpp/ethPrice").expect(200);
    for args in [&["key", "list", &org][..], &["key", "show", &org, id], &["usage", &org]] {
        for args in [args.to_vec(), [args, &["--json"]].concat()] {
            let local = console.site.admin(&args);
            assert!(local.code == Some(0) && local.stdout.contains(id), "{args:?}: {local:?}");
            same(&Site::admin_of_server(console.admin, &console.viewer, &args), &local, &args);
        }
    }
    let changed = document(because(&["key", "set", &org, id, "--limit", "none", "--max-in-flight", "2", "--json"]));
    assert_eq!((&changed["limit"], &changed["max_in_flight"]), (&Value::Null, &json!(2)));
    let unknown_route = because(&["key", "set", &org, id, "--route", "/mpp/ethPrise"]);
    assert!(unknown_route.code == Some(2) && unknown_route.stderr.contains("did you mean"), "{unknown_route:?}");
    assert_eq!(because(&["key", "disable", &org, id]).code, Some(0));
    let _ = console.server.client_with(secret).get("/mpp/ethPrice").expect(401);
    assert_eq!(because(&["key", "enable", &org, id]).code, Some(0));
    let rotated = document(because(&["key", "rotate", &org, id, "--json"]));
    let _ = console.server.client_with(secret).get("/mpp/ethPrice").expect(401);
    let _ = console.server.client_with(rotated["key"].as_str().unwrap()).get("/mpp/ethPrice").expect(200);
    assert_eq!(because(&["key", "delete", &org, id, "--yes"]).code, Some(0));
    assert_eq!(because(&["key", "delete", &org, id, "--yes"]).code, Some(4));

    let viewer =
        Site::admin_of_server(console.admin, &console.viewer, &["--reason", "x", "key", "create", &org, "--name", "x"]);
    assert_eq!(viewer.code, Some(6), "viewers change nothing: {viewer:?}");
    let reasonless = console.remote(&["key", "create", &org, "--name", "x"]);
    assert!(reasonless.code == Some(2) && reasonless.stderr.contains("--reason"), "{reasonless:?}");
    let log = document(console.remote(&["audit", "--json"])).to_string();
    assert!(log.contains("key.create") && log.contains("key.delete"), "{log}");
    assert!(!log.contains(secret) && !log.contains(rotated["key"].as_str().unwrap()), "{log}");
}

#[test]
fn reports_of_a_server_are_those_of_its_store() {
    let console = Console::start();
    let (org, key) = console.account("busy", 5);
    let (revoked, _) = console.account("gone", 1);
    let _ = console.manager().post(&format!("/admin/accounts/{revoked}/revoke"), &json!({"reason": "x"})).expect(200);
    let client = console.server.client_with(&key);
    for path in ["/mpp/ethPrice", "/mpp/ethPrice", "/mpp/block/latest"] {
        let _ = client.get(path);
    }
    let commands: [&[&str]; 7] = [
        &["usage"],
        &["usage", "--days", "36500"],
        &["usage", &org],
        &["usage", &org, "--days", "36500"],
        &["usage", &revoked],
        &["payments", "records"],
        &["verify"],
    ];
    for args in commands {
        for args in [args.to_vec(), [args, &["--json"]].concat()] {
            let local = console.site.admin(&args);
            assert_eq!(local.code, Some(0), "{args:?}: {local:?}");
            same(&Site::admin_of_server(console.admin, &console.viewer, &args), &local, &args);
        }
    }
    let usage: Value = serde_json::from_str(&console.remote(&["usage", "--json"]).stdout).unwrap();
    assert!(usage["totals"]["usage_events"].as_u64().unwrap() >= 2, "{usage}");
    assert_eq!(usage["accounts"].as_array().unwrap().len(), 2);
    let unknown = ["usage", "org_00000000000000000000"];
    assert_eq!((console.remote(&unknown).code, console.site.admin(&unknown).code), (Some(4), Some(4)));

    // Page by page, the server lists the same accounts.
    let first = console.viewer().get("/admin/usage?days=30&limit=1").expect(200).json();
    let next = first["next"].as_str().unwrap();
    let second = console.viewer().get(&format!("/admin/usage?days=30&limit=1&after={next}")).expect(200).json();
    assert_eq!(json!([first["accounts"][0], second["accounts"][0]]), usage["accounts"]);
    assert!(second.get("next").is_none_or(Value::is_null), "{second}");
    for bad in ["days=0", "days=36501", "limit=1001", "after=nonsense"] {
        let _ = console.viewer().get(&format!("/admin/usage?{bad}")).expect(400);
    }
}

#[test]
fn a_server_finds_the_discrepancies_of_its_store() {
    let console = Console::start();
    let _ = console.account("my-agent", 5);
    let change = |sql: &str| {
        let database = rusqlite::Connection::open(console.site.database()).unwrap();
        assert_eq!(database.execute(sql, []).unwrap(), 1);
    };
    change("UPDATE meter SET balance = balance + 1");
    for args in [&["verify"][..], &["verify", "--json"]] {
        let (remote, local) = (console.remote(args), console.site.admin(args));
        assert_eq!(local.code, Some(3), "{local:?}");
        same(&remote, &local, args);
        assert!(remote.stdout.contains("5.0000000001"), "{remote:?}");
    }
    change("UPDATE account SET revoked_at = 1");
    let (remote, local) = (console.remote(&["verify"]), console.site.admin(&["verify"]));
    for output in [remote, local] {
        assert!(output.code == Some(1) && output.stderr.contains("do not have the secret"), "{output:?}");
    }
    let _ = metering_tests::client::Client::new(console.admin).post("/admin/verify", &json!({})).expect(401);
}

/// A shop with an admin address, and a manager's token.
struct Desk {
    shop: Shop,
    admin: SocketAddr,
    manager: String,
    viewer: String,
}

impl Desk {
    fn open() -> Option<Self> {
        let mut shop = Shop::with(Chain::setup().manual_mining(), "2", QUIET)?;
        let token = |name: &str| {
            let created = shop.site.admin_json(&["operator", "create", name, "--role", name]);
            created["token"].as_str().unwrap().to_owned()
        };
        let (manager, viewer) = (token("manager"), token("viewer"));
        // Without it no block is fetched in full, and thousands of blocks are read quickly.
        let removed = shop.site.admin(&["plan", "remove", "coin", "--chain-id", "31337"]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        let admin = free_address();
        shop.restart_with(&[("METERING_ADMIN_LISTEN", &admin.to_string())]);
        Some(Self { shop, admin, manager, viewer })
    }

    /// `metering admin --server payments ...`, as a manager.
    fn payments(&self, args: &[&str]) -> ProgramOutput {
        Site::admin_of_server(self.admin, &self.manager, &[&["payments"], args].concat())
    }

    fn assign(&self, tx: &str, account: &str, more: &[&str]) -> ProgramOutput {
        self.payments(&[&["assign", "--chain", "devnet", "--tx", tx, "--account", account], more].concat())
    }

    /// Both programs list the same; returns the payments.
    #[track_caller]
    fn listed(&self, args: &[&str]) -> Vec<Value> {
        let remote = |more: &[&str]| self.payments(&[&["list"], args, more].concat());
        same(&remote(&[]), &self.shop.payments("list", args), args);
        let document = remote(&["--json"]);
        same(&document, &self.shop.payments("list", &[args, &["--json"]].concat()), args);
        let document: Value = serde_json::from_str(&document.stdout).unwrap();
        document["payments"].as_array().unwrap().clone()
    }
}

#[test]
fn payments_are_listed_and_assigned_through_a_server() {
    let Some(desk) = Desk::open() else { return };
    let shop = &desk.shop;
    let (account, other) = (shop.site.account("1"), shop.site.account("1"));
    let (payer, customer) = (shop.customer(), shop.customer());
    let quote = shop.quote(Kind::Token, &customer.address());
    let early = shop.pay(Kind::Token, &payer, STARTER);
    let quoted = shop.pay(Kind::Token, &customer, quote.units);
    shop.chain.mine(20);
    let short = shop.pay(Kind::Token, &payer, STARTER / 2);
    shop.chain.mine(3);
    let shallow = shop.pay(Kind::Token, &payer, STARTER);
    shop.chain.mine(1);

    let listed = desk.listed(&["--from-block", "0", "--chain", "devnet"]);
    let hashes: Vec<_> = listed.iter().map(|payment| payment["tx_hash"].as_str().unwrap()).collect();
    assert_eq!(hashes.len(), 3, "{listed:?}");
    assert!([&early, &short, &quoted].iter().all(|hash| hashes.contains(&hash.as_str())), "{listed:?}");
    // Without --chain, those that cannot be read are skipped.
    assert_eq!(desk.listed(&[]).len(), 3);
    assert!(desk.payments(&["list"]).stderr.contains("chain quiet has no rpc_urls and is skipped"));
    for (args, code) in [
        (&["list", "--chain", "base"][..], 4),
        (&["list", "--chain", "quiet"], 1),
        (&["list", "--chain", "devnet", "--to-block", "999999"], 2),
        (&["list", "--chain", "devnet", "--from-block", "9", "--to-block", "8"], 2),
    ] {
        let (remote, local) = (desk.payments(args), shop.payments("list", &args[1..]));
        assert_eq!((remote.code, local.code), (Some(code), Some(code)), "{args:?}: {remote:?} {local:?}");
    }

    let (plan, reason) = (["--plan", "starter"], ["--reason", "Ticket 311"]);
    let with: Vec<&str> = [&plan[..], &reason].concat();
    let (unknown, missing) = (format!("0x{}", "12".repeat(32)), "org_00000000000000000000");
    // transaction, account, options, exit code, what the message contains
    let refusals: [(&str, &str, &[&str], i32, &str); 8] = [
        (&early, &account.org_id, &plan, 2, "--reason"),
        (&early, missing, &with, 4, missing),
        (&early, &account.org_id, &["--plan", "gold", "--reason", "x"], 4, "gold"),
        (&unknown, &account.org_id, &with, 4, &unknown),
        (&short, &account.org_id, &with, 1, "2.5 USDC"),
        (&shallow, &account.org_id, &with, 1, "1 of 2 confirmations"),
        (&quoted, &account.org_id, &with, 5, "quote of agent"),
        (&early, &account.org_id, &["--credits", "1281023894", "--reason", "x"], 1, "out of range"),
    ];
    for (hash, account, options, code, text) in refusals {
        let output = desk.assign(hash, account, options);
        assert_eq!(output.code, Some(code), "{hash} {options:?}: {output:?}");
        assert!(output.stderr.contains(text), "{hash} {options:?}: {output:?}");
    }
    let assign = ["payments", "assign", "--chain", "devnet", "--tx", &early, "--account", &account.org_id];
    let viewer = Site::admin_of_server(desk.admin, &desk.viewer, &[&assign[..], &with].concat());
    assert_eq!(viewer.code, Some(6), "{viewer:?}");
    assert_eq!(shop.balance(&account.api_key), "1", "nothing that was refused was credited");

    let given = desk.assign(&early, &account.org_id, &with);
    assert!(given.code == Some(0) && given.stdout.starts_with("Added 10.5 credits for 5 USDC.\n"), "{given:?}");
    assert_eq!(shop.balance(&account.api_key), "11.5");
    // Both say the same about a payment that the account has.
    for more in [&[][..], &["--json"]] {
        let args = [&with[..], more].concat();
        let local = [&assign[2..], &args].concat();
        same(&desk.assign(&early, &account.org_id, &args), &shop.payments("assign", &local), &args);
    }
    assert_eq!(desk.assign(&early, &other.org_id, &with).code, Some(5));
    let despite = desk.assign(&quoted, &account.org_id, &[&with[..], &["--despite-quote", "--json"]].concat());
    assert!(despite.code == Some(0) && despite.stderr.contains("quote of agent is waiting"), "{despite:?}");
    let document: Value = serde_json::from_str(&despite.stdout).unwrap();
    assert_eq!((&document["amount_added"], document.get("details")), (&json!(10.5), None), "{document}");

    until("the payments are final", || {
        let records = shop.site.admin_json(&["payments", "records"]);
        records["payments"].as_array().unwrap().iter().all(|payment| payment["state"] == "final")
    });
    for args in [&["records"][..], &["records", "--json"]] {
        same(&desk.payments(args), &shop.site.admin(&[&["payments"], args].concat()), args);
    }
    let log = shop.site.admin_json(&["audit", "--subject", &format!("payment:31337:{early}")]);
    let done = log["entries"]
        .as_array()
        .unwrap()
        .iter()
        .find(|entry| entry["outcome"]["result"] == "done" && entry["actor"] == "operator:manager");
    let done = done.unwrap_or_else(|| panic!("{log}"));
    assert_eq!((&done["action"], &done["reason"]), (&json!("payment.assign"), &json!("Ticket 311")));
    assert_eq!(desk.listed(&["--from-block", "0", "--chain", "devnet", "--all"]).len(), 3);
}
