//! The operators' API on the admin address: signing in, roles, actions and the audit log.

mod faults;
mod lookups;
mod requests;
mod webhooks;

use std::net::SocketAddr;

use metering_tests::client::Client;
use metering_tests::command::ProgramOutput;
use metering_tests::ports::free_address;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

/// A server with an admin address, and an operator of each role.
pub(super) struct Console {
    pub(super) site: Site,
    pub(super) server: Server,
    pub(super) admin: SocketAddr,
    pub(super) manager: String,
    pub(super) viewer: String,
}

impl Console {
    pub(super) fn start() -> Self {
        Self::start_on(Site::new())
    }

    fn start_on(site: Site) -> Self {
        Self::start_with(site, &[])
    }

    /// A server with more settings: environment variables and their values.
    fn start_with(site: Site, settings: &[(&str, &str)]) -> Self {
        let token = |name: &str, role: &str| {
            let created = site.admin_json(&["operator", "create", name, "--role", role]);
            created["token"].as_str().expect("a token is printed").to_owned()
        };
        let (manager, viewer) = (token("mo", "manager"), token("vi", "viewer"));
        let admin = free_address();
        let server = site.server().set("METERING_ADMIN_LISTEN", &admin.to_string());
        let server = settings.iter().fold(server, |server, (name, value)| server.set(name, value)).start();
        Self { site, server, admin, manager, viewer }
    }

    pub(super) fn manager(&self) -> Client {
        Client::new(self.admin).with_key(&self.manager)
    }

    pub(super) fn viewer(&self) -> Client {
        Client::new(self.admin).with_key(&self.viewer)
    }

    /// An account that the manager creates.
    pub(super) fn account(&self, name: &str, credits: u32) -> (String, String) {
        let body = json!({"agent_name": name, "credits": credits, "reason": "a test"});
        let created = self.manager().post("/admin/accounts", &body).expect(201).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        (text(&created["account"]["org_id"]), text(&created["api_key"]))
    }

    /// `metering admin --server`, with the manager's token.
    pub(super) fn remote(&self, args: &[&str]) -> ProgramOutput {
        Site::admin_of_server(self.admin, &self.manager, args)
    }

    fn audit(&self) -> Vec<Value> {
        self.manager().get("/admin/audit").expect(200).json()["entries"].as_array().unwrap().clone()
    }
}

/// Signs in as a browser does: a client with the cookie, and the secret to repeat.
fn sign_in(admin: SocketAddr, token: &str) -> (Client, String) {
    let response = Client::new(admin).post("/admin/session", &json!({"token": token})).expect(200);
    let cookie = response.header("set-cookie").unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && !cookie.contains("Secure"), "{cookie}");
    let csrf = response.json()["csrf_token"].as_str().unwrap().to_owned();
    let pair = cookie.split(';').next().unwrap().to_owned();
    (Client::new(admin).with_header("cookie", &pair), csrf)
}

#[test]
fn actions_need_a_manager_and_a_reason_and_are_logged() {
    let console = Console::start();
    let (org, key) = console.account("my-agent", 5);
    let target = format!("/admin/accounts/{org}/grant");
    let grant = json!({"credits": 2.5, "reason": "Ticket 311"});

    let without = Client::new(console.admin).post(&target, &grant).expect(401);
    assert_eq!(without.error(), "unauthorized");
    let _ = Client::new(console.admin).with_key(&key).post(&target, &grant).expect(401);
    assert_eq!(console.viewer().post(&target, &grant).expect(403).error(), "forbidden");
    let reasonless = console.manager().post(&target, &json!({"credits": 2.5})).expect(400);
    assert!(reasonless.error() == "validation_failed" && reasonless.text().contains("Reason"), "{reasonless:?}");

    let granted = console.manager().post(&target, &grant).expect(200);
    assert_eq!(granted.member("credit_balance"), "7.5");
    let entry = &console.audit()[0];
    assert_eq!((&entry["actor"], &entry["action"]), (&json!("operator:mo"), &json!("account.grant")));
    assert_eq!((&entry["reason"], &entry["subject"]), (&json!("Ticket 311"), &json!(org)));
    assert_eq!(entry["request"], json!({"credits": 2.5, "note": "Granted by the operator"}));
    assert_eq!(entry["before"]["credit_balance"], 5);
    assert_eq!(entry["outcome"]["after"]["credit_balance"], 7.5);
    // Nothing that was refused is in the log as an action.
    assert_eq!(console.audit().len(), 4, "two operators, an account, a grant");
    console.site.verify();
}

#[test]
fn everything_that_is_read_can_be_read_by_a_viewer() {
    let console = Console::start();
    let (org, key) = console.account("my-agent", 5);
    let client = console.server.client_with(&key);
    let _ = client.get("/mpp/ethPrice").expect(200);
    let viewer = console.viewer();
    let found = viewer.get("/admin/accounts?search=MY-AG").expect(200).json();
    assert_eq!(found["accounts"][0]["org_id"], json!(org));
    assert!(viewer.get("/admin/accounts?search=nobody").expect(200).json()["accounts"].as_array().unwrap().is_empty());
    let account = |path: &str| viewer.get(&format!("/admin/accounts/{org}{path}")).expect(200).json();
    assert_eq!(account("")["agent_name"], "my-agent");
    assert_eq!(account("/ledger")["entries"][0]["type"], "adjustment");
    assert_eq!(account("/usage?days=7")["totals"]["usage_events"], 1);
    assert_eq!(account("/activity")["transactions"].as_array().unwrap().len(), 2);
    assert!(account("/payments")["payments"].as_array().unwrap().is_empty());
    let report = viewer.get("/admin/report?days=1").expect(200).json();
    assert_eq!((&report["accounts"], &report["by_day"][0]["usage_events"]), (&json!(1), &json!(1)));
    assert_eq!(report["top_accounts"][0]["org_id"], json!(org));
    assert_eq!(report["top_routes"][0]["route_template"], "/mpp/ethPrice");
    let health = viewer.get("/admin/health").expect(200).json();
    assert_eq!((&health["status"], &health["problem"]), (&json!("ok"), &Value::Null));
    assert!(!viewer.get("/admin/catalogue").expect(200).json()["endpoints"].as_array().unwrap().is_empty());
    let csv = viewer.get("/admin/audit.csv").expect(200).text();
    assert!(csv.starts_with("id,at,actor,action,subject,reason,") && csv.contains("operator:mo"), "{csv}");
    let names: Vec<_> = viewer.get("/admin/operators").expect(200).json()["operators"].as_array().unwrap().clone();
    assert_eq!(names.iter().map(|operator| &operator["name"]).collect::<Vec<_>>(), ["mo", "vi"]);
    for (path, status) in [
        ("/admin/accounts/org_00000000000000000000", 404),
        ("/admin/accounts/nonsense", 400),
        ("/admin/accounts?limit=0", 400),
        ("/admin/accounts?after=nonsense", 400),
        ("/admin/report?days=3661", 400),
        ("/admin/audit?before=x", 400),
        ("/admin/payments/arrivals?chain=base", 404),
        ("/admin/nonsense", 404),
        ("/credits/plans", 404),
        ("/mpp/ethPrice", 404),
    ] {
        let _ = viewer.get(path).expect(status);
    }
    let _ = viewer.send("DELETE", "/admin/accounts", None).expect(405);
}

#[test]
fn the_public_address_has_no_administration() {
    let console = Console::start();
    let public = console.server.client_with(&console.manager);
    for path in ["/admin/accounts", "/admin/session", "/admin/openapi.json", "/console"] {
        let _ = public.get(path).expect(404);
    }
    let _ = public.post("/admin/session", &json!({"token": console.manager})).expect(404);
}

#[test]
fn a_browser_session_acts_only_with_its_secret_and_ends() {
    let console = Console::start();
    let (org, _) = console.account("my-agent", 5);
    let wrong = format!("opr_{}", "0".repeat(43));
    for token in ["", "opr_1", wrong.as_str()] {
        let _ = Client::new(console.admin).post("/admin/session", &json!({"token": token})).expect(401);
    }
    let elsewhere = Client::new(console.admin).with_header("sec-fetch-site", "cross-site");
    let _ = elsewhere.post("/admin/session", &json!({"token": console.manager})).expect(403);
    let (browser, csrf) = sign_in(console.admin, &console.manager);
    assert_eq!(browser.get("/admin/session").expect(200).json()["operator"]["name"], "mo");
    let target = format!("/admin/accounts/{org}/limits");
    let limits = json!({"requests_per_minute": 7, "reason": "Ticket 311"});
    assert_eq!(browser.post(&target, &limits).expect(403).error(), "forbidden");
    let (other, other_csrf) = sign_in(console.admin, &console.viewer);
    let crossed = sign_in(console.admin, &console.manager).0.with_header("x-csrf-token", &other_csrf);
    let _ = crossed.post(&target, &limits).expect(403);
    let _ = other.with_header("x-csrf-token", &other_csrf).post(&target, &limits).expect(403);
    let (browser, csrf) = (browser.with_header("x-csrf-token", &csrf), csrf);
    let changed = browser.post(&target, &limits).expect(200).json();
    assert_eq!(changed["rate_limits"]["requests_per_minute"], 7);
    let _ = browser.send("DELETE", "/admin/session", None).expect(204);
    let _ = browser.get("/admin/session").expect(401);
    assert!(!format!("{:?}", console.audit()).contains(&csrf));
}

#[test]
fn revoking_an_operator_ends_token_and_sessions_at_once() {
    let console = Console::start();
    let (browser, _) = sign_in(console.admin, &console.viewer);
    let _ = browser.get("/admin/session").expect(200);
    let output = console.site.admin(&["operator", "revoke", "vi", "--reason", "Left the company"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let _ = browser.get("/admin/session").expect(401);
    let _ = console.viewer().get("/admin/accounts").expect(401);
    let again = console.site.admin(&["operator", "create", "vi", "--role", "viewer"]);
    assert!(again.code == Some(5) && again.stderr.contains("never used again"), "{again:?}");
    let _ = console.manager().get("/admin/accounts").expect(200);
}

#[test]
fn a_rotated_token_replaces_the_old_one_and_ends_sessions() {
    let console = Console::start();
    let (browser, _) = sign_in(console.admin, &console.viewer);
    let rotate = |arguments: &[&str]| console.site.admin(&[&["operator", "rotate-token"], arguments].concat());
    let output = rotate(&["vi", "--reason", "Yearly rotation", "--json"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let issued: Value = serde_json::from_str(&output.stdout).unwrap();
    let _ = browser.get("/admin/session").expect(401);
    let _ = console.viewer().get("/admin/accounts").expect(401);
    let fresh = Client::new(console.admin).with_key(issued["token"].as_str().unwrap());
    let _ = fresh.get("/admin/accounts").expect(200);
    assert_eq!(issued["operator"]["role"], "viewer");
    // A viewer may not rotate, not even the own token; a manager may, over HTTP.
    let _ = fresh.post("/admin/operators/vi/rotate-token", &json!({"reason": "mine"})).expect(403);
    let over_http = console.remote(&["--reason", "Lost", "operator", "rotate-token", "vi", "--json"]);
    assert_eq!(over_http.code, Some(0), "{over_http:?}");
    let _ = fresh.get("/admin/accounts").expect(401);
    assert_eq!(rotate(&["nobody"]).code, Some(4));
}

#[test]
fn the_command_line_uses_a_server_as_it_uses_a_store() {
    let console = Console::start();
    let document = |output: ProgramOutput| -> Value {
        assert_eq!(output.code, Some(0), "{output:?}");
        serde_json::from_str(&output.stdout).unwrap()
    };
    let because = ["--reason", "Ticket 311"];
    let with = |args: &[&str]| console.remote(&[&because, args].concat());
    let created = document(with(&["account", "create", "--agent-name", "far", "--credits", "3", "--json"]));
    let org = created["org_id"].as_str().unwrap();
    let key = created["api_key"].as_str().unwrap();
    let _ = console.server.client_with(key).get("/mpp/ethPrice").expect(200);
    // Both print the same document.
    for args in [&["account", "show", org][..], &["account", "list"], &["plan", "list", "--all"], &["operator", "list"]]
    {
        assert_eq!(document(console.remote(&[args, &["--json"]].concat())), console.site.admin_json(args), "{args:?}");
    }
    assert_eq!(document(with(&["account", "grant", org, "--credits", "1", "--json"]))["total_credits_granted"], 4);
    assert_eq!(with(&["account", "limits", org, "--rpm", "9"]).code, Some(0));
    let plan = [
        "plan",
        "set",
        "starter",
        "--chain-id",
        "1",
        "--token-symbol",
        "ETH",
        "--payment-kind",
        "native_value",
        "--credits",
        "10",
        "--token-amount",
        "0.1",
        "--token-decimals",
        "18",
        "--label",
        "Starter",
    ];
    assert_eq!(with(&plan).code, Some(0));
    assert_eq!(with(&["plan", "activate", "starter", "--chain-id", "1", "--off"]).code, Some(0));
    assert_eq!(console.site.admin_json(&["plan", "list", "--all"])["plans"][0]["active"], false);
    assert_eq!(with(&["plan", "remove", "starter", "--chain-id", "1"]).code, Some(0));
    assert_eq!(with(&["plan", "remove", "starter", "--chain-id", "1"]).code, Some(4));
    let rotated = document(with(&["account", "rotate-key", org, "--json"]));
    let _ = console.server.client_with(key).get("/credits/balance").expect(401);
    let _ = console.server.client_with(rotated["api_key"].as_str().unwrap()).get("/credits/balance").expect(200);
    assert_eq!(with(&["account", "revoke", org, "--yes"]).code, Some(0));
    assert_eq!(with(&["account", "grant", org, "--credits", "1"]).code, Some(5));
    assert_eq!(console.remote(&["account", "show", "org_00000000000000000000"]).code, Some(4));

    // The error and the next step.
    let reasonless = console.remote(&["account", "rotate-key", org]);
    assert!(reasonless.code == Some(2) && reasonless.stderr.contains("--reason"), "{reasonless:?}");
    let local = console.remote(&["backup", "copy.db"]);
    assert!(local.code == Some(2) && local.stderr.contains("without --server"), "{local:?}");
    let wrong = Site::admin_of_server(console.admin, &format!("opr_{}", "0".repeat(43)), &["account", "list"]);
    assert!(wrong.code == Some(6) && wrong.stderr.contains("operator create"), "{wrong:?}");

    let log = document(console.remote(&["audit", "--json"]));
    assert!(!log.to_string().contains("sk_live_") && !log.to_string().contains("opr_"), "{log}");
    let actions: Vec<_> = log["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    let expected = [
        "account.grant",
        "account.revoke",
        "account.rotate_key",
        "plan.remove",
        "plan.remove",
        "plan.deactivate",
        "plan.set",
        "account.limits",
        "account.grant",
        "account.create",
        "operator.create",
        "operator.create",
    ];
    assert_eq!(actions, expected);
    assert_eq!(log["entries"][0]["outcome"]["result"], "refused");
    console.site.verify();
}

#[test]
fn a_catalogue_is_checked_before_it_is_served() {
    let console = Console::start();
    let served = console.viewer().get("/admin/catalogue").expect(200).text();
    let check = |text: &str| -> Response {
        console.viewer().send("POST", "/admin/catalogue/check", Some(text.as_bytes())).expect(200)
    };
    let same = check(&served).json();
    assert_eq!((&same["valid"], &same["changes"]), (&json!(true), &json!([])));
    let dearer = check(&served.replacen("\"credit_weight\": 1,", "\"credit_weight\": 2,", 1)).json();
    assert_eq!(dearer["changes"][0]["change"], "price", "{dearer}");
    let stolen = check(&served.replacen("/mpp/ethPrice\"", "/credits/mine\"", 1)).json();
    assert!(stolen["problem"].as_str().unwrap().contains("reserved for the service"), "{stolen}");
    let tiers = check(&served.replacen("\"multiplier\": 2", "\"multiplier\": 3", 1)).json();
    assert_eq!((&tiers["valid"], &tiers["changes"][0]["change"]), (&json!(true), &json!("price")), "{tiers}");
    assert_ne!(tiers["changes"][0]["price_before"], tiers["changes"][0]["price_after"]);
    let misspelt = check(&served.replacen("credit_weight", "credit_wieght", 1)).json();
    assert!(misspelt["problem"].as_str().unwrap().contains("credit_wieght"), "{misspelt}");
    let _ = console.manager().send("POST", "/admin/catalogue/check", Some(&vec![b' '; 5 << 20])).expect(413);
}

#[test]
fn a_plan_cannot_send_customers_money_elsewhere() {
    let console = Console::start();
    let plan = |recipient: Value| {
        json!({"reason": "test", "plan": {
            "id": "starter", "chain_id": 1, "token_symbol": "ETH", "payment_kind": "native_value", "credits": 10,
            "token_amount": "0.1", "token_decimals": 18, "label": "Starter", "recipient": recipient,
        }})
    };
    let put = |recipient: Value| -> Response {
        let body = serde_json::to_vec(&plan(recipient)).unwrap();
        console.manager().send("PUT", "/admin/plans", Some(&body))
    };
    let thief = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    let refused = put(json!(thief)).expect(403);
    assert!(refused.text().contains("metering admin plan set"), "{refused:?}");
    let _ = put(Value::Null).expect(200);
    let _ = put(json!(thief)).expect(403);
    // A recipient that was set on the store itself does not change.
    let set = ["plan", "set", "starter", "--chain-id", "1", "--recipient", thief];
    assert_eq!(console.site.admin(&set).code, Some(0));
    let _ = put(json!(thief)).expect(200);
    let _ = put(json!("0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359")).expect(403);
}

#[test]
fn the_openapi_document_describes_what_is_served() {
    let console = Console::start();
    let document = Client::new(console.admin).get("/admin/openapi.json").expect(200).json();
    let manager = console.manager();
    for (path, item) in document["paths"].as_object().unwrap() {
        let target: Vec<_> = path.split('/').map(|piece| if piece.starts_with('{') { "1" } else { piece }).collect();
        for (method, operation) in item.as_object().unwrap() {
            let status = manager.send(&method.to_uppercase(), &target.join("/"), Some(b"{}")).status.to_string();
            let described = operation["responses"].as_object().unwrap();
            assert!(described.contains_key(&status), "{method} {path}: {status}");
        }
    }
}
