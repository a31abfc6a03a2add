//! Volume tiers on the account page, in a real browser: scenes of `tests/browser/volumes.mjs`.

use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::{Value, json};

use super::{account, play};
use crate::support::upstream::Upstream;

/// Routes with volume tiers, and one without: two requests for nothing, two for 0.25 credits, all others for 0.125.
fn serving(site: &Site, upstream: &Upstream, paths: &[&str]) -> Server {
    let tiers = json!([{"up_to": 2, "credits": "0"}, {"up_to": 4, "credits": "0.25"}, {"credits": "0.125"}]);
    let word = json!([{"name": "word", "in": "path", "type": "string", "required": true}]);
    let route = |path: &str, price: &Value| json!({"path": path, "method": "GET", "metered": true, "price": price, "params": word});
    let mut routes: Vec<Value> = paths.iter().map(|path| route(path, &tiers)).collect();
    routes.push(route("/api/status/{word}", &json!("0.5")));
    let catalogue = json!({"market": "TEST", "version": 1, "endpoints": routes});
    let file = site.write("catalogue.json", &catalogue.to_string());
    site.server().args(["--upstream", &upstream.url()]).args(["--catalogue".into(), file.into_os_string()]).start()
}

#[test]
fn volume_tiers_are_shown_with_what_is_left_of_them() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let server = serving(&site, &upstream, &["/api/echo/{word}"]);
    play("volumeTiers", &server, json!({"key": account(&site, "holder", "2")}));
    site.verify();
}

#[test]
fn catalogue_without_volume_tiers_shows_nothing_of_them() {
    let (site, upstream) = (Site::new(), Upstream::start());
    play("withoutVolumeTiers", &serving(&site, &upstream, &[]), json!({"key": account(&site, "holder", "2")}));
}

#[test]
fn volume_tiers_fit_phones_and_desktops() {
    let (site, upstream) = (Site::new(), Upstream::start());
    let long = format!("/api/echo/{}/{{word}}", "a-very-long-name-".repeat(5));
    let paths = ["/api/echo/{word}", &long, "/api/one/{word}", "/api/two/{word}", "/api/six/{word}", "/api/ten/{word}"];
    play("volumeLooks", &serving(&site, &upstream, &paths), json!({"key": account(&site, "holder", "2")}));
}
