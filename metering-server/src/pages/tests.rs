//! Properties that every page must have, checked on all of them.

mod asset_files;
mod brand;

use metering_core::Catalogue;

use super::*;
use crate::config::Config;

const BASE_URL: &str = "https://api.example.com";
const SCRIPT: &str = "<script>alert(1)</script>";

fn catalogue() -> Catalogue {
    Catalogue::from_json(metering_sample::ROUTES).unwrap()
}

fn pages_of(toml: &str) -> Pages {
    Pages::new(&toml::from_str(toml).unwrap(), &catalogue(), &Default::default(), BASE_URL).unwrap()
}

fn get(pages: &Pages, path: &str) -> Reply {
    pages.respond(&Method::GET, path, &HeaderMap::new())
}

fn body(reply: &Reply) -> &str {
    std::str::from_utf8(reply.body()).unwrap()
}

fn header<'r>(reply: &'r Reply, name: &str) -> &'r str {
    reply.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

/// Every page, including the 404 page.
fn all(pages: &Pages) -> Vec<(String, Reply)> {
    let mut all: Vec<_> = pages.by_path.keys().map(|path| (path.clone(), get(pages, path))).collect();
    all.push(("/metering/nothing".to_owned(), get(pages, "/metering/nothing")));
    all
}

/// All values of an attribute, as a browser reads them.
fn attributes(html: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    html.split(&start).skip(1).map(|rest| rest.split('"').next().unwrap().replace("&#x2f;", "/")).collect()
}

#[test]
fn the_pages_are_where_the_protocol_says() {
    let pages = pages_of("");
    let paths = [
        "/metering",
        "/metering/account",
        "/metering/receipt",
        "/metering/statement",
        "/oauth/authorize",
        "/verify",
        "/verify-receipt",
        "/agents-tos/1",
        "/docs",
        "/docs/mcp",
        "/docs/guides",
        "/docs/guides/quickstart",
        "/docs/guides/webhooks",
    ];
    for path in paths {
        let reply = get(&pages, path);
        assert_eq!(reply.status(), StatusCode::OK, "{path}");
        assert!(body(&reply).starts_with("<!doctype html>"), "{path}");
    }
    for path in ["/metering/x", "/agents-tos/2", "/agents-tos", "/docs/x", "/docs/guides/x", "/assets/x.js"] {
        assert_eq!(get(&pages, path).status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn root_and_trailing_slashes_lead_to_pages() {
    let pages = pages_of("");
    for (path, to) in [("/", "/metering"), ("/metering/", "/metering"), ("/metering/account/", "/metering/account")] {
        let reply = get(&pages, path);
        assert_eq!((reply.status(), header(&reply, "location")), (StatusCode::FOUND, to), "{path}");
    }
    let with_slash = get(&pages, "/verify/");
    assert_eq!(
        (with_slash.status(), body(&with_slash)),
        (StatusCode::OK, body(&get(&pages, "/verify"))),
        "served without a redirect, so the query is kept"
    );
}

#[test]
fn every_page_carries_the_headers_that_protect_it() {
    for (path, reply) in all(&pages_of("")) {
        let expected = [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            (
                "content-security-policy",
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                 worker-src 'self'; font-src 'self'; frame-src 'none'; form-action 'self'; base-uri 'none'; \
                 frame-ancestors 'none'",
            ),
        ];
        for (name, value) in expected {
            assert_eq!(header(&reply, name), value, "{name} of {path}");
        }
        assert!(header(&reply, "permissions-policy").contains("camera=()"), "{path}");
    }
}

#[test]
fn turnstile_is_allowed_only_on_challenge_pages() {
    let pages = pages_of("[signup]\nbot_check = 'turnstile'\n[signup.turnstile]\nsite_key = 'site\"key'");
    for (path, reply) in all(&pages) {
        let challenged = matches!(path.as_str(), "/metering" | "/verify");
        let policy = header(&reply, "content-security-policy");
        for directive in ["script-src 'self'", "connect-src 'self'", "frame-src"] {
            let opened = policy.contains(&format!("{directive} https://challenges.cloudflare.com;"));
            assert_eq!(opened, challenged, "{directive} of {path}");
        }
        assert_eq!(body(&reply).contains("src=\"https://challenges.cloudflare.com"), challenged, "{path}");
        assert!(body(&reply).contains("data-challenge=\"turnstile\" data-site-key=\"site&quot;key\""), "{path}");
        assert!(!body(&reply).contains("altcha"), "{path}");
    }
    let off = pages_of("[signup]\nbot_check = 'off'");
    assert!(all(&off).iter().all(|(_, reply)| !body(reply).contains("altcha") && !body(reply).contains("cloudflare")));
}

#[test]
fn only_the_reference_may_call_the_metered_routes_of_another_origin() {
    let pages = pages_of("public_url = 'https://api.example.com/v1'\npages_url = 'https://account.example.com'");
    for (path, reply) in all(&pages) {
        let policy = header(&reply, "content-security-policy");
        let opened = policy.contains("connect-src 'self' https://api.example.com;");
        assert_eq!(opened, path == "/docs", "{path}: {policy}");
        assert_eq!(policy.matches("api.example.com").count(), usize::from(opened), "{path}: {policy}");
    }
}

#[test]
fn no_page_runs_or_styles_anything_within_itself_or_names_another_site() {
    for (path, reply) in all(&pages_of("")) {
        let html = body(&reply);
        assert!(!html.contains("<style") && attributes(html, "style").is_empty(), "{path} has a style");
        for script in html.split("<script").skip(1) {
            let (tag, rest) = script.split_once('>').unwrap();
            assert!(
                tag.contains(" src=\"/assets/") && rest.starts_with("</script>"),
                "{path} has a script: {script:.80}"
            );
        }
        let handlers = html
            .split('<')
            .filter(|tag| tag.split_whitespace().any(|word| word.starts_with("on") && word.contains('=')));
        assert_eq!(handlers.count(), 0, "{path} has an event handler");
        for name in ["href", "src", "action"] {
            for target in attributes(html, name) {
                let inside = target.starts_with('#') || (target.starts_with('/') && !target.starts_with("//"));
                // Guides name other sites, but load nothing from there.
                let named = path.starts_with("/docs/guides/") && name == "href" && target.starts_with("https://");
                assert!(inside || named, "{path} links to {target}");
            }
        }
    }
}

#[test]
fn our_scripts_and_styles_name_no_other_site_and_run_no_text() {
    let others = |path: &str| {
        path.contains("/altcha") || path.contains(".license.") || !(path.ends_with(".js") || path.ends_with(".css"))
    };
    for (path, asset) in pages_of("").assets.iter().filter(|(path, _)| !others(path)) {
        let text = std::str::from_utf8(asset.body()).unwrap();
        // The install link of an MCP client opens a program, not a site.
        let known: usize =
            ["http://www.w3.org/2000/svg", "cursor://"].map(|url| text.matches(url).count()).iter().sum();
        let sites = text.matches("://").count() - known;
        assert_eq!(sites, 0, "{path} names another site");
        for danger in [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "new Function",
            "console.",
            "document.cookie",
            "@import",
        ] {
            // The samples of the API reference print their result.
            let in_sample = danger == "console." && path.starts_with("/assets/docs.");
            assert!(in_sample || !text.contains(danger), "{path} has {danger}");
        }
    }
}

#[test]
fn operator_text_is_escaped() {
    let toml = format!(
        "[brand]\nname = '{SCRIPT}'\nlogo = '<b onclick=\"x\">'\nheadline = '{SCRIPT}'\ntagline = '\" onload=\"x'\n\
         [terms]\nversion = '1\"><i>'\nurl = 'javascript:alert(\"1\")'"
    );
    for (path, reply) in all(&pages_of(&toml)) {
        let html = body(&reply);
        for raw in [SCRIPT, "<b onclick", "\" onload=", "<i>", "alert(\"1\")"] {
            assert!(!html.contains(raw), "{raw} on {path}");
        }
        assert!(html.contains("&lt;script&gt;alert(1)"), "{path} shows the name");
    }
}

#[test]
fn our_scripts_are_modules_that_can_be_joined() {
    let scripts = render::scripts();
    assert!(scripts.len() > 90);
    for (name, text) in scripts {
        let _ = module::Module::read(&text).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        // It outlives the tab, so only the module that decides what is remembered may use it, and the one that keeps a
        // program's request, which has no secret, until a link in mail was opened.
        assert!(["pending.js", "session.js"].contains(&&*name) || !text.contains("localStorage"), "{name}");
    }
}

#[test]
fn terms_come_from_the_operator_where_they_give_any() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("terms.md");
    std::fs::write(&file, format!("# Ours\n\n{SCRIPT}\n\nBe **kind**.")).unwrap();
    let toml = format!("[terms]\nversion = '2026-11'\nfile = '{}'", file.display());
    let pages = pages_of(&toml);
    let html = get(&pages, "/agents-tos/2026-11");
    assert!(body(&html).contains("<h2 id=\"ours\">Ours</h2>") && body(&html).contains("<strong>kind</strong>"));
    assert!(!body(&html).contains(SCRIPT));
    assert_eq!(get(&pages, "/agents-tos/1").status(), StatusCode::NOT_FOUND);
    assert!(attributes(body(&get(&pages, "/metering")), "href").contains(&"/agents-tos/2026-11".to_owned()));

    let elsewhere = pages_of("[terms]\nurl = 'https://example.com/terms'");
    assert_eq!(get(&elsewhere, "/agents-tos/1").status(), StatusCode::NOT_FOUND);
    assert!(attributes(body(&get(&elsewhere, "/metering")), "href").contains(&"https://example.com/terms".to_owned()));

    let missing = toml::from_str("[terms]\nfile = '/nonexistent/terms.md'").unwrap();
    let error = Pages::new(&missing, &catalogue(), &Default::default(), BASE_URL).unwrap_err().to_string();
    assert!(error.starts_with("configuration key terms.file: /nonexistent/terms.md: "), "{error}");
}

#[test]
fn head_is_the_response_without_its_body() {
    let pages = pages_of("");
    for path in ["/metering", "/favicon.ico", pages.assets.path("icon.svg").unwrap(), "/metering/nothing"] {
        let full = get(&pages, path);
        let head = pages.respond(&Method::HEAD, path, &HeaderMap::new());
        assert!(head.body().is_empty(), "{path}");
        assert_eq!(head.status(), full.status(), "{path}");
        assert_eq!(header(&head, "content-length"), full.body().len().to_string(), "{path}");
        assert_eq!(header(&head, "cache-control"), header(&full, "cache-control"), "{path}");
    }
}

#[test]
fn other_methods_get_the_allowed_ones() {
    let pages = pages_of("");
    for (method, path, allow) in [
        (Method::POST, "/metering", "GET, HEAD"),
        (Method::DELETE, "/assets/x", "GET, HEAD"),
        (Method::PUT, "/verify", "GET, HEAD, POST"),
    ] {
        let reply = pages.respond(&method, path, &HeaderMap::new());
        assert_eq!(
            (reply.status(), header(&reply, "allow")),
            (StatusCode::METHOD_NOT_ALLOWED, allow),
            "{method} {path}"
        );
    }
}

#[test]
fn a_known_icon_is_not_sent_again() {
    let pages = pages_of("");
    let icon = get(&pages, "/favicon.ico");
    assert_eq!((icon.status(), header(&icon, "content-type")), (StatusCode::OK, "image/svg+xml"));
    let mut headers = HeaderMap::new();
    headers.insert(header::IF_NONE_MATCH, icon.headers()[header::ETAG].clone());
    let again = pages.respond(&Method::GET, "/favicon.ico", &headers);
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(again.body().is_empty());
    headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"another\""));
    assert_eq!(pages.respond(&Method::GET, "/favicon.ico", &headers).status(), StatusCode::OK);
}

#[test]
fn examples_call_a_route_of_the_catalogue() {
    let path = |pages: &Pages| attributes(body(&get(pages, "/metering")), "data-sample-path").remove(0);
    assert!(path(&pages_of("")).starts_with("/mpp/"));
    let none = Pages::new(&Config::default(), &Catalogue::default(), &Default::default(), BASE_URL).unwrap();
    assert_eq!(path(&none), "/credits/balance");
}

#[test]
fn guides_are_listed_with_the_operators_pages_and_in_the_reference() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("our-data.md"), format!("# Our {SCRIPT}\n\n{{{{ base_url }}}}\n\n## {SCRIPT}\n"))
        .unwrap();
    let pages = pages_of(&format!("[docs]\npages = '{}'", folder.path().display()));
    let own = get(&pages, "/docs/guides/our-data");
    assert!(body(&own).contains("<p>https://api.example.com</p>") && !body(&own).contains(SCRIPT));
    assert!(attributes(body(&own), "aria-current").contains(&"page".to_owned()));
    for path in ["/docs", "/docs/guides", "/docs/guides/quickstart"] {
        let page = get(&pages, path);
        let links = attributes(body(&page), "href");
        for guide in ["/docs/guides/our-data", "/docs/guides/quickstart", "/docs/guides/webhooks"] {
            assert!(links.contains(&guide.to_owned()), "{path} links to {guide}");
        }
        assert!(!body(&page).contains(SCRIPT), "{path}");
    }
    let described = attributes(body(&own), "content").into_iter().filter(|text| text == BASE_URL).count();
    assert_eq!(described, 2, "its first paragraph is its description, here and in previews");
    let reference = get(&pages, "/docs");
    let heading = "/docs/guides/webhooks#verify-the-signature".to_owned();
    assert!(attributes(body(&reference), "href").contains(&heading), "the search finds headings");
}

/// A catalogue priced in credits: the pages once said that a plan of ten credits buys 72,000 calls of weight 1.
#[test]
fn prices_are_said_in_credits_and_requests() {
    let route = |path: &str, price: &str, unit: &str| {
        format!(r#"{{"path": "{path}", "method": "GET", "metered": true, "price": "{price}", "unit": "{unit}"}}"#)
    };
    let routes = [route("/search", "0.01", "search"), route("/report", "0.05", "report")].join(",");
    let priced = Catalogue::from_json(&format!(r#"{{"market": "X", "version": 1, "endpoints": [{routes}]}}"#)).unwrap();
    let config = toml::from_str("[signup]\nfree_credits = 2").unwrap();
    let pages = Pages::new(&config, &priced, &Default::default(), BASE_URL).unwrap();
    let first = get(&pages, "/metering");
    assert!(body(&first).contains("enough for 200 searches or 40 reports."), "{}", body(&first));
    assert!(body(&first).contains("<td>0.01 credits per search</td>"), "{}", body(&first));
    for (path, reply) in all(&pages).into_iter().chain(all(&pages_of(""))) {
        assert!(!body(&reply).to_lowercase().contains("weight"), "{path} speaks of weights");
    }
}
