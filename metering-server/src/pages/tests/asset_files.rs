//! Stylesheets, scripts and images, under the names that pages have for them.

use super::*;

#[test]
fn page_assets_exist_and_are_immutable() {
    let pages = pages_of("");
    for (path, reply) in all(&pages) {
        let html = body(&reply);
        let loaded = [attributes(html, "href"), attributes(html, "src")].concat();
        let assets: Vec<_> = loaded.into_iter().filter(|target| target.starts_with("/assets/")).collect();
        let count = |extension: &str| assets.iter().filter(|asset| asset.ends_with(extension)).count();
        assert_eq!((count(".css"), count(".js")), (1, 1), "{path} has one stylesheet and one script: {assets:?}");
        for asset in &assets {
            let reply = get(&pages, asset);
            assert_eq!(reply.status(), StatusCode::OK, "{asset} of {path}");
            assert_eq!(header(&reply, "cache-control"), "public, max-age=31536000, immutable", "{asset}");
            assert_eq!(header(&reply, "x-content-type-options"), "nosniff", "{asset}");
            let kind = match asset.rsplit('.').next().unwrap() {
                "js" => "text/javascript; charset=utf-8",
                "css" => "text/css; charset=utf-8",
                "svg" => "image/svg+xml",
                "woff2" => "font/woff2",
                other => panic!("{asset} is a {other}"),
            };
            assert_eq!(header(&reply, "content-type"), kind, "{asset}");
        }
    }
    for (path, asset) in pages.assets.iter().filter(|(path, _)| path.ends_with(".js")) {
        let text = std::str::from_utf8(asset.body()).unwrap();
        for reference in text.split("/assets/").skip(1) {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let name = reference.split(|c| !is_of_name(c)).next().unwrap();
            assert_eq!(get(&pages, &format!("/assets/{name}")).status(), StatusCode::OK, "{name} in {path}");
        }
    }
}

#[test]
fn assets_are_served_under_hashed_names_only() {
    let pages = pages_of("");
    let real = pages.assets.path("icon.svg").unwrap();
    let other_hash = real.replace("icon.", "icon.0");
    let paths = [
        "/assets",
        "/assets/",
        "/assets/base.css",
        "/assets/account.js",
        "/assets/icon.svg",
        &other_hash,
        "/assets/../Cargo.toml",
        "/assets/%2e%2e/Cargo.toml",
        "/assets/..%2fCargo.toml",
        "/assets//etc/passwd",
        "/assets/templates/layout.html",
        "/assets/layout.html",
        "/assets/terms.md",
        "/assets/routes.json",
    ];
    for path in paths {
        let reply = get(&pages, path);
        assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{path}");
        assert_eq!(header(&reply, "cache-control"), "no-store", "{path}");
    }
}
