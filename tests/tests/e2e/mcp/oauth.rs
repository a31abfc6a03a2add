//! Agents that get access by OAuth, unchanged: the official SDKs' own clients find the metadata, register, redeem a code
//! and refresh. And what the endpoints refuse, over HTTP.

use metering_tests::client::Client;
use metering_tests::mcp::{Sdk, run_script};
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::http::{call, initialize, post, streamable_session};
use super::{BASE_TOOL, credits};
use crate::support::wire::{BASE_CALL, amount};

const REDIRECT_URI: &str = "https://agent.example/callback";
/// The example of RFC 7636.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// The keys of an account but its own, by name.
fn keys(owner: &Client) -> Vec<Value> {
    let listed = owner.get("/keys").expect(200).json();
    listed["data"].as_array().unwrap().iter().filter(|key| key["parent_id"].is_string()).cloned().collect()
}

fn text(response: &Response, member: &str) -> String {
    response.json()[member].as_str().unwrap().to_owned()
}

fn form(client: &Client, path: &str, fields: &[(&str, &str)]) -> Response {
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let client = client.clone().with_header("Content-Type", "application/x-www-form-urlencoded");
    client.send("POST", path, Some(body.join("&").as_bytes()))
}

#[test]
fn agents_of_both_sdks_get_a_key_with_a_budget_and_refresh_it() {
    let site = Site::verified();
    let server = site.server().start();
    let url = format!("http://{}/mcp", server.address());
    for sdk in Sdk::ALL {
        let account = site.account("2");
        let Some(done) = run_script(sdk, "oauth", &[&url, &account.api_key, BASE_TOOL]) else { return };
        let token = |name: &str| done[name]["access_token"].as_str().unwrap().to_owned();
        let (first, second) = (token("first"), token("second"));
        assert!(first.starts_with("sk_live_") && second.starts_with("sk_live_") && first != second, "{sdk:?}");
        assert_eq!((&done["second"]["scope"], &done["second"]["token_type"]), (&json!("call read"), &json!("Bearer")));
        let owner = server.client_with(&account.api_key);
        let made = keys(&owner);
        let [key] = &made[..] else { panic!("{sdk:?} has one key: {made:?}") };
        assert_eq!(key["name"], format!("{sdk:?} agent"));
        assert_eq!((&key["limit_reset"], credits(&key["usage"])), (&json!("monthly"), amount(2 * BASE_CALL)), "{key}");
        let agent = server.client_with(&second);
        let _ = agent.get("/credits/balance").expect(200);
        let _ = agent.get("/keys").expect(403);
        // Deleted as any other key.
        let _ = owner.send("DELETE", &format!("/keys/{}", key["id"].as_str().unwrap()), None).expect(200);
        let _ = agent.get("/credits/balance").expect(401);
        let client = &server.client();
        let refresh = done["second"]["refresh_token"].as_str().unwrap();
        let refused = form(client, "/oauth/token", &[("grant_type", "refresh_token"), ("refresh_token", refresh)]);
        assert_eq!(refused.expect(400).json()["error"], "invalid_request", "client_id is required");
    }
    assert!(!server.log().contains("sk_live_") && !server.log().contains("ogt_"));
}

#[test]
fn mcp_remote_signs_in_for_clients_that_start_programs() {
    let site = Site::new();
    let server = site.server().start();
    let account = site.account("2");
    let url = format!("http://{}/mcp", server.address());
    let Some(done) = run_script(Sdk::TypeScript, "remote", &[&url, &account.api_key, BASE_TOOL]) else { return };
    assert_eq!(done["asked"]["resource"], url.as_str());
    let made = keys(&server.client_with(&account.api_key));
    let [key] = &made[..] else { panic!("one key was made: {made:?}") };
    assert_eq!((credits(&key["limit"]), credits(&key["usage"])), ("0.5".to_owned(), amount(BASE_CALL)), "{key}");
}

#[test]
fn a_401_of_mcp_leads_to_the_metadata() {
    let site = Site::new();
    let server = site.server().start();
    // Without a public URL, the service is named as its client names it.
    let issuer = "http://localhost".to_owned();
    let client = server.client();
    let refused = post(&client, "/mcp", &initialize()).expect(401);
    let metadata = format!("{issuer}/.well-known/oauth-protected-resource/mcp");
    let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"call read\"");
    assert_eq!(refused.header("www-authenticate"), Some(challenge.as_str()));
    let resource = client.get("/.well-known/oauth-protected-resource/mcp").expect(200).json();
    assert_eq!(
        (&resource["resource"], &resource["authorization_servers"]),
        (&json!(format!("{issuer}/mcp")), &json!([issuer]))
    );
    assert_eq!(client.get("/.well-known/oauth-protected-resource").expect(200).json()["resource"], issuer.as_str());
    let server_metadata = client.get("/.well-known/oauth-authorization-server").expect(200).json();
    assert_eq!(server_metadata["issuer"], issuer.as_str());
    assert_eq!(server_metadata["code_challenge_methods_supported"], json!(["S256"]));
    for path in ["/.well-known/openid-configuration", "/.well-known/oauth-protected-resource/x", "/authorize", "/token"]
    {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn what_is_not_in_order_is_refused() {
    let site = Site::new();
    let server = site.server().start();
    let (client, account) = (server.client(), site.account("2"));
    let owner = server.client_with(&account.api_key);
    let registration = json!({"client_name": "Agent", "redirect_uris": [REDIRECT_URI]});
    let id = text(&client.post("/oauth/register", &registration).expect(201), "client_id");
    let asked = json!({"response_type": "code", "client_id": id, "redirect_uri": REDIRECT_URI, "state": "s",
        "code_challenge": CHALLENGE, "code_challenge_method": "S256"});
    let with = |name: &str, value: &str| {
        let mut asked = asked.clone();
        asked[name] = value.into();
        asked
    };
    // Nothing is sent where the client has not registered.
    for (name, value) in [("client_id", "cli_unknown"), ("redirect_uri", "https://evil.example/callback")] {
        let problem = client.post("/oauth/requests", &with(name, value)).expect(400);
        assert!(problem.json()["fields"][name].is_string(), "{problem:?}");
        let consent = json!({"authorization": with(name, value)});
        assert!(owner.post("/oauth/consents", &consent).expect(400).json()["fields"][name].is_string());
    }
    // The client gets the rest.
    let described = client.post("/oauth/requests", &with("code_challenge_method", "plain")).expect(200).json();
    let cancel = described["cancel_url"].as_str().unwrap();
    assert!(cancel.starts_with(&format!("{REDIRECT_URI}?error=invalid_request&")), "{cancel}");
    assert!(described["problem"].is_string() && cancel.contains("&state=s&iss=http"), "{cancel}");
    // A consent needs the owner, and gives no more than the owner has.
    let _ = client.post("/oauth/consents", &json!({"authorization": asked})).expect(401);
    let wide = json!({"authorization": asked, "key": {"scopes": ["call", "topup"]}});
    assert!(owner.post("/oauth/consents", &wide).expect(400).json()["fields"]["scopes"].is_string());
    let consented = text(&owner.post("/oauth/consents", &json!({"authorization": asked})).expect(200), "redirect_to");
    let code = consented.split_once("?code=").unwrap().1.split('&').next().unwrap();
    let redeem =
        [("grant_type", "authorization_code"), ("code", code), ("client_id", id.as_str()), ("code_verifier", VERIFIER)];
    let wrong = "x".repeat(43);
    // what is changed, the code of the error
    for (name, value, error) in [
        ("grant_type", "password", "unsupported_grant_type"),
        ("code", "ogt_x", "invalid_grant"),
        ("client_id", "cli_other", "invalid_grant"),
        ("code_verifier", wrong.as_str(), "invalid_grant"),
        ("code_verifier", "", "invalid_request"),
        ("resource", "https://other.example", "invalid_target"),
    ] {
        let mut fields: Vec<_> = redeem.iter().copied().filter(|(field, _)| *field != name).collect();
        fields.push((name, value));
        assert_eq!(form(&client, "/oauth/token", &fields).expect(400).json()["error"], error, "{name}");
    }
    let token = form(&client, "/oauth/token", &redeem).expect(200);
    assert_eq!(token.header("cache-control"), Some("no-store"));
    let agent = server.client_with(&text(&token, "access_token"));
    let _ = agent.get("/credits/balance").expect(200);
    let refresh = text(&token, "refresh_token");
    let _ = form(&client, "/oauth/revoke", &[("token", refresh.as_str())]).expect(200);
    let _ = agent.get("/credits/balance").expect(401);
}

#[test]
fn a_token_that_lacks_a_scope_leads_to_the_owner_again() {
    let site = Site::new();
    let server = site.server().start();
    let (client, account) = (server.client(), site.account("2"));
    let owner = server.client_with(&account.api_key);
    let registration = json!({"client_name": "Agent", "redirect_uris": [REDIRECT_URI]});
    let id = text(&client.post("/oauth/register", &registration).expect(201), "client_id");
    let session = |process: &Server, scope: &str| {
        let asked = json!({"response_type": "code", "client_id": id, "redirect_uri": REDIRECT_URI, "scope": scope,
            "code_challenge": CHALLENGE, "code_challenge_method": "S256"});
        let consented = owner.post("/oauth/consents", &json!({"authorization": asked})).expect(200);
        let consented = text(&consented, "redirect_to");
        let code = consented.split_once("?code=").unwrap().1.split('&').next().unwrap();
        let redeem = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", id.as_str()),
            ("code_verifier", VERIFIER),
        ];
        let token = form(&client, "/oauth/token", &redeem).expect(200);
        streamable_session(&process.client_with(&text(&token, "access_token")))
    };
    let served =
        |client: &Client, tool: &str| post(client, "/mcp", &call(3, tool)).expect(200).json()["result"].clone();
    let (alone_site, gateway) = (Site::new(), format!("http://{}", server.address()));
    let alone = alone_site.server().set("METERING_SURFACES", "mcp").set("METERING_MCP__GATEWAY", &gateway).start();
    for process in [&server, &alone] {
        let narrow = session(process, "call");
        let refused = post(&narrow, "/mcp", &call(2, "get_credit_balance")).expect(403);
        let challenge = "Bearer error=\"insufficient_scope\", \
            resource_metadata=\"http://localhost/.well-known/oauth-protected-resource/mcp\", scope=\"call read\"";
        assert_eq!(refused.header("www-authenticate"), Some(challenge));
        assert_eq!(refused.json()["error"]["data"]["error"], "key_scope");
        assert_eq!(served(&narrow, BASE_TOOL)["isError"], false);
        assert_eq!(served(&session(process, "call read"), "get_credit_balance")["isError"], false);
    }
}

#[test]
fn a_key_is_exchanged_for_a_narrower_one() {
    let site = Site::new();
    let server = site.server().start();
    let (client, account) = (server.client(), site.account("2"));
    let exchange = |key: &str, more: &[(&str, &str)]| {
        let grant = "urn:ietf:params:oauth:grant-type:token-exchange";
        let kind = "urn:ietf:params:oauth:token-type:access_token";
        let fields = [("grant_type", grant), ("subject_token", key), ("subject_token_type", kind)];
        form(&client, "/oauth/token", &[&fields[..], more].concat())
    };
    let given = exchange(&account.api_key, &[("scope", "read"), ("limit", "0.5"), ("expires_in", "60")]).expect(200);
    assert_eq!((given.json()["expires_in"].clone(), text(&given, "scope")), (json!(60), "read".to_owned()));
    let narrow = text(&given, "access_token");
    let _ = server.client_with(&narrow).get("/credits/balance").expect(200);
    assert_eq!(exchange(&narrow, &[]).expect(400).json()["error"], "invalid_request", "it lacks the scope manage");
    assert_eq!(exchange(&account.api_key, &[("scope", "all")]).expect(400).json()["error"], "invalid_scope");
    assert_eq!(exchange("sk_live_x", &[]).expect(400).json()["error"], "invalid_request");
    let made = keys(&server.client_with(&account.api_key));
    let [key] = &made[..] else { panic!("one key was made: {made:?}") };
    assert_eq!((key["scopes"].clone(), credits(&key["limit"])), (json!(["read"]), "0.5".to_owned()));
}
