//! The guides in a real browser: scenes of `tests/browser/guides.mjs`.

use metering_tests::server::Server;
use metering_tests::site::Site;
use serde_json::json;

use super::play;
use crate::signup::server;

/// A server with two pages of the operator's: a new one, and one that replaces ours.
fn with_pages(site: &Site) -> Server {
    let own = site.write("our-data.md", "# Our data\n\nFrom {{ brand }}. <b>Bold</b>, and [keys](keys.md).\n");
    site.write("tokens.md", "# Our prices\n\nAsk us.\n");
    // The folder also has other files and folders, which are not pages.
    let folder = own.parent().unwrap().to_str().unwrap().to_owned();
    server(site, &[("METERING_BRAND__NAME", "Acme Data"), ("METERING_DOCS__PAGES", &folder)])
}

#[test]
fn guides_are_found_from_the_side_bar_and_the_search() {
    let site = Site::new();
    play("guides", &with_pages(&site), json!({}));
}

#[test]
fn operators_see_their_name_routes_and_pages() {
    let site = Site::new();
    play("ownGuides", &with_pages(&site), json!({"brand": "Acme Data"}));
}

#[test]
fn guides_are_readable_without_scripts() {
    let site = Site::new();
    play("guideWithoutScripts", &server(&site, &[]), json!({}));
}

#[test]
fn guides_are_accessible_in_both_schemes_and_widths() {
    let site = Site::new();
    play("guideLooks", &server(&site, &[]), json!({}));
}
