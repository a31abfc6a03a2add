//! Signing in to the console through an OpenID Connect provider.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::UNIX_EPOCH;

use metering_tests::client::Client;
use metering_tests::ports::free_address;
use metering_tests::response::Response;
use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::oidc_provider::{CLIENT_ID, CLIENT_SECRET, Key, OidcProvider};

const OPERATORS: [(&str, &str, &str); 3] = [
    ("email", "mo@example.com", "manager"),
    ("domain", "example.com", "viewer"),
    ("group", "metering-managers", "manager"),
];

/// A server whose operators can sign in through a provider.
struct SignIn {
    site: Site,
    _server: Server,
    admin: SocketAddr,
    issuer: String,
    manager: String,
}

/// A sign-in that a browser began.
struct Begun {
    state: String,
    nonce: String,
    challenge: String,
    /// The browser, with its cookie.
    browser: Client,
}

impl SignIn {
    fn start(issuer: &str) -> Self {
        let site = Site::new();
        let created = site.admin_json(&["operator", "create", "tom", "--role", "manager"]);
        let manager = created["token"].as_str().unwrap().to_owned();
        let admin = free_address();
        configure(&site, admin, issuer, &OPERATORS);
        let file = site.path("metering.toml").display().to_string();
        let _server = site.server().args(["--config", &file]).start();
        Self { site, _server, admin, issuer: issuer.to_owned(), manager }
    }

    fn begin(&self) -> Begun {
        let response = Client::new(self.admin).get("/admin/oidc/start").expect(303);
        let cookie = response.header("set-cookie").unwrap();
        assert!(cookie.contains("; Path=/admin/oidc/callback; HttpOnly; SameSite=Lax"), "{cookie}");
        let browser = Client::new(self.admin).with_header("cookie", cookie.split(';').next().unwrap());
        let (endpoint, query) = response.header("location").unwrap().split_once('?').unwrap();
        assert_eq!(endpoint, format!("{}/auth", self.issuer));
        let sent: HashMap<_, _> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let fixed = ["client_id", "response_type", "code_challenge_method", "scope"].map(|name| sent[name].as_str());
        assert_eq!(fixed, [CLIENT_ID, "code", "S256", "openid email"]);
        let [state, nonce, challenge] = ["state", "nonce", "code_challenge"].map(|name| sent[name].clone());
        Begun { state, nonce, challenge, browser }
    }

    /// The claims of a manager.
    fn claims(&self, begun: &Begun) -> Value {
        let now = UNIX_EPOCH.elapsed().unwrap().as_secs();
        json!({
            "iss": self.issuer, "aud": CLIENT_ID, "sub": "2489", "iat": now, "exp": now + 60, "nonce": begun.nonce,
            "email": "mo@example.com", "email_verified": true,
        })
    }

    /// Signs in with changed claims, and a key that is not the provider's, if there is one.
    fn sign_in(&self, provider: &OidcProvider, changes: &Value, key: Option<&Key>) -> Response {
        let begun = self.begin();
        let mut claims = self.claims(&begun);
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        begun.finish(&provider.grant(&begun.challenge, &claims, key))
    }

    /// The browser of a person who signed in, with its session and token.
    fn signed_in(&self, provider: &OidcProvider, changes: &Value) -> (Client, Value) {
        let response = self.sign_in(provider, changes, None);
        assert_eq!(said(&response), "");
        let cookie = response.header("set-cookie").unwrap();
        assert!(cookie.contains("; Path=/admin; HttpOnly; SameSite=Strict"), "{cookie}");
        let browser = Client::new(self.admin).with_header("cookie", cookie.split(';').next().unwrap());
        let session = browser.get("/admin/session").expect(200).json();
        (browser.with_header("x-csrf-token", session["csrf_token"].as_str().unwrap()), session)
    }

    fn token(&self) -> Client {
        Client::new(self.admin).with_key(&self.manager)
    }
}

impl Begun {
    fn finish(&self, code: &str) -> Response {
        self.browser.get(&format!("/admin/oidc/callback?code={code}&state={}", self.state)).expect(303)
    }
}

/// Why the browser was sent back to the sign-in page; empty if it is signed in.
fn said(response: &Response) -> &str {
    let location = response.header("location").unwrap();
    location.strip_prefix("/console?sign_in=").unwrap_or_else(|| {
        assert_eq!(location, "/console");
        ""
    })
}

fn configure(site: &Site, admin: SocketAddr, issuer: &str, operators: &[(&str, &str, &str)]) {
    let operators = operators
        .iter()
        .map(|(by, value, role)| format!("[[console.oidc.operators]]\n{by} = {value:?}\nrole = {role:?}\n"));
    let secret = site.write("oidc-secret", &format!("{CLIENT_SECRET}\n"));
    site.write(
        "metering.toml",
        &format!(
            "admin_listen = \"{admin}\"\n[limits]\nverification_per_ip = \"1000/1m\"\n\
             [console]\nurl = \"http://{admin}\"\n[console.oidc]\nissuer = {issuer:?}\n\
             client_id = {CLIENT_ID:?}\nclient_secret_file = {:?}\nname = \"Acme\"\n{}",
            secret.display().to_string(),
            operators.collect::<String>()
        ),
    );
}

#[test]
fn people_sign_in_with_the_role_of_their_entry_and_the_log_names_them() {
    let provider = OidcProvider::start();
    let console = SignIn::start(provider.issuer());
    let shown = Client::new(console.admin).get("/admin/oidc").expect(200).json();
    assert_eq!(shown, json!({"name": "Acme", "problem": null}));

    let (manager, session) = console.signed_in(&provider, &json!({}));
    assert_eq!(
        (&session["operator"]["name"], &session["operator"]["role"]),
        (&json!("mo@example.com"), &json!("manager"))
    );
    let account = json!({"agent_name": "my-agent", "credits": 5, "reason": "Ticket 311"});
    let _ = manager.post("/admin/accounts", &account).expect(201);
    let log = console.token().get("/admin/audit").expect(200).json();
    assert_eq!(log["entries"][0]["actor"], json!(format!("oidc:mo@example.com (2489 at {})", provider.issuer())));
    assert_eq!(log["entries"][0]["reason"], "Ticket 311");

    let (viewer, session) = console.signed_in(&provider, &json!({"sub": "3", "email": "vi@example.com"}));
    assert_eq!(session["operator"]["role"], "viewer");
    let _ = viewer.get("/admin/accounts").expect(200);
    let _ = viewer.post("/admin/accounts", &account).expect(403);
    let in_group = json!({"sub": "4", "email": null, "groups": ["staff", "metering-managers"]});
    let (_, session) = console.signed_in(&provider, &in_group);
    assert_eq!((&session["operator"]["name"], &session["operator"]["role"]), (&json!("4"), &json!("manager")));

    let _ = manager.send("DELETE", "/admin/session", None).expect(204);
    let _ = manager.get("/admin/session").expect(401);
    let _ = viewer.get("/admin/session").expect(200);
}

#[test]
fn only_tokens_for_this_sign_in_and_people_with_a_role_are_accepted() {
    let provider = OidcProvider::start();
    let console = SignIn::start(provider.issuer());
    let past = UNIX_EPOCH.elapsed().unwrap().as_secs() - 1;
    // claims, outcome
    let table = [
        (json!({}), ""),
        (json!({"nonce": "another"}), "invalid"),
        (json!({"nonce": null}), "invalid"),
        (json!({"aud": "another-client"}), "invalid"),
        (json!({"aud": [CLIENT_ID, "another-client"]}), "invalid"),
        (json!({"iss": "https://id.example.com"}), "invalid"),
        (json!({"exp": past}), "invalid"),
        (json!({"email_verified": false}), "no_role"),
        (json!({"email": "mo@other.example", "groups": ["staff"]}), "no_role"),
    ];
    for (claims, outcome) in table {
        assert_eq!(said(&console.sign_in(&provider, &claims, None)), outcome, "{claims}");
    }
    // A key that was published after the server read the keys, and one that never is.
    provider.rotate("second");
    assert_eq!(said(&console.sign_in(&provider, &json!({}), None)), "");
    assert_eq!(said(&console.sign_in(&provider, &json!({}), Some(&Key::new("unknown")))), "invalid");
    assert_eq!(said(&console.sign_in(&provider, &json!({}), Some(&Key::new("second")))), "invalid");

    let begun = console.begin();
    let code = || provider.grant(&begun.challenge, &console.claims(&begun), None);
    assert_eq!(said(&begun.finish(&code())), "");
    assert_eq!(said(&begun.finish(&code())), "expired", "the state was used");
    let begun = console.begin();
    let elsewhere = Begun { browser: console.begin().browser, ..begun };
    assert_eq!(said(&elsewhere.finish("code")), "expired", "another browser began it");
    let begun = console.begin();
    assert_eq!(said(&begun.finish("unknown")), "refused");
    let begun = console.begin();
    let cancelled = format!("/admin/oidc/callback?error=access_denied&state={}", begun.state);
    assert_eq!(said(&begun.browser.get(&cancelled).expect(303)), "refused");
    assert_eq!(said(&Client::new(console.admin).get("/admin/oidc/callback").expect(303)), "expired");
}

#[test]
fn a_session_ends_with_its_entry_and_tokens_work_without_the_provider() {
    let provider = OidcProvider::start();
    let console = SignIn::start(provider.issuer());
    let (manager, _) = console.signed_in(&provider, &json!({}));
    let reload = |operators: &[(&str, &str, &str)]| {
        configure(&console.site, console.admin, provider.issuer(), operators);
        console.token().post("/admin/reload", &json!({"reason": "a test"})).expect(200).json()
    };
    assert_eq!(reload(&OPERATORS[1..])["changed"], json!(["console.oidc.operators"]));
    assert_eq!(manager.get("/admin/session").expect(200).json()["operator"]["role"], "viewer", "as one of the domain");
    reload(&OPERATORS[2..]);
    let _ = manager.get("/admin/session").expect(401);
    assert_eq!(said(&console.sign_in(&provider, &json!({}), None)), "no_role");

    let down = SignIn::start(&format!("http://{}", free_address()));
    let client = Client::new(down.admin);
    let shown = client.get("/admin/oidc").expect(200).json();
    assert!(shown["problem"].as_str().unwrap().contains("sign in with a token"), "{shown}");
    assert_eq!(said(&client.get("/admin/oidc/start").expect(303)), "unavailable");
    let _ = client.post("/admin/session", &json!({"token": down.manager})).expect(200);
    let _ = down.token().get("/admin/accounts").expect(200);
}
