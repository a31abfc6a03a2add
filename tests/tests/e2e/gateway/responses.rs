//! The gateway's handling of response headers: how many it accepts, and which caches may store the response.

use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use crate::support::script::{Script, with_length};

/// A gateway in front of a scripted upstream, with a route that is paid for and one that is not.
fn gateway(site: &Site, upstream: &Script) -> Server {
    let route = |path: &str, metered: bool| json!({"path": path, "method": "POST", "metered": metered});
    let catalogue = json!({"market": "M", "version": 1, "endpoints": [route("/paid", true), route("/free", false)]});
    let file = site.write("routes.json", &catalogue.to_string());
    site.server().args(["--upstream", &upstream.url(), "--catalogue"]).args([file]).start()
}

fn responding(headers: &str) -> Value {
    json!({"steps": [with_length("200 OK", headers, "data")]})
}

#[test]
fn response_that_one_client_paid_for_is_not_cached_for_others() {
    let (site, upstream) = (Site::verified(), Script::start());
    let account = site.account("1");
    let server = gateway(&site, &upstream);
    let bearer = server.client_with(&account.api_key);
    let [own, azure] = ["X-API-Key", "Api-Key"].map(|name| server.client().with_header(name, &account.api_key));
    let public =
        responding("Cache-Control: public, s-maxage=60\r\nCache-Control: max-age=5\r\nCDN-Cache-Control: x\r\n");
    for (path, client) in [("/paid", &bearer), ("/paid", &own), ("/paid", &azure), ("/free", &own)] {
        let response = client.post(path, &public).expect(200);
        assert_eq!(response.header("cache-control"), Some("max-age=5, private"), "{path}");
        assert_eq!(response.header("cdn-cache-control"), None, "{path}");
    }
    let unsaid = bearer.post("/paid", &responding("")).expect(200);
    assert_eq!(unsaid.header("cache-control"), Some("no-store"));
    let anonymous = server.client().post("/free", &responding("Cache-Control: public, max-age=5\r\n")).expect(200);
    assert_eq!(anonymous.header("cache-control"), Some("public, max-age=5"));
    // Documents of the service itself, too.
    assert_eq!(own.get("/endpoints.json").expect(200).header("cache-control"), Some("max-age=60, private"));
}

#[test]
fn response_may_have_many_headers_and_one_with_too_many_costs_nothing() {
    let (site, upstream) = (Site::verified(), Script::start());
    let account = site.account("1");
    let server = gateway(&site, &upstream);
    let client = server.client_with(&account.api_key);
    let many = |count: usize| {
        let headers: String = (0..count).map(|number| format!("X-Piece-{number}: {number}\r\n")).collect();
        responding(&headers)
    };
    let response = client.post("/paid", &many(200)).expect(200);
    assert_eq!((response.header("x-piece-0"), response.header("x-piece-199")), (Some("0"), Some("199")));
    let refused = client.post("/paid", &many(300)).expect(502);
    assert_eq!(refused.error(), "upstream_unreachable");
    assert!(refused.text().contains("more than 224 headers"), "{}", refused.text());
    assert_eq!(refused.header("x-bds-credit-charged"), Some("0"));
    let garbage = client.post("/paid", &json!({"steps": ["220 smtp.example ready\r\n"]})).expect(502);
    assert!(garbage.text().contains("not a response of HTTP"), "{}", garbage.text());
}
