//! The configuration that sellers copy.

use metering_tests::llm_upstream::LlmUpstream;
use metering_tests::site::Site;

use crate::llm::scene::shipped;

#[test]
fn shipped_configuration_sends_the_providers_key_instead_of_the_clients() {
    let (site, upstream) = (Site::verified(), LlmUpstream::start());
    let key = site.write("provider-key", "sk-of-the-seller\n");
    let text = std::fs::read_to_string(shipped().join("metering.toml")).unwrap();
    let routes = shipped().join("routes.json");
    let text = text
        .replace("https://api.openai.com\"", &format!("{}\"", upstream.url()))
        .replace("/etc/metering/provider-key", &key.display().to_string())
        .replace("/etc/metering/routes.json", &routes.display().to_string());
    let file = site.write("metering.toml", &text);
    let account = site.account("1");
    let server = site.server().args(["--config", &file.display().to_string()]).start();
    let body = br#"{"model": "small", "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 5}"#;
    let client = server.client_with(&account.api_key);
    let response = client.send("POST", "/v1/chat/completions", Some(body)).expect(200);
    let received = upstream.received().pop().unwrap();
    assert_eq!(received.headers["authorization"], "Bearer sk-of-the-seller");
    assert!(!format!("{received:?} {response:?} {}", server.log()).contains(&account.api_key));
    assert!(!format!("{response:?} {}", server.log()).contains("sk-of-the-seller"));
}
