use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use metering_core::wire::ErrorCode;

use super::*;

/// Pages of ours that guides link to, and the fragments of each.
const PAGES: [(&str, &[&str]); 4] = [
    ("/docs", &["errors", "tag-keys", "tag-payments", "tag-webhooks"]),
    ("/docs/mcp", &[]),
    ("/metering", &[]),
    ("/metering/account", &["usage", "keys", "webhooks", "top-up", "connect"]),
];

fn variables() -> Variables {
    Variables::new([
        ("brand", "Acme <Data>".to_owned()),
        ("base_url", "https://api.example.com".to_owned()),
        ("free_credits", "2 free credits".to_owned()),
        ("example_route", "/price".to_owned()),
        ("example_price", "0.01 credits".to_owned()),
    ])
}

fn ours() -> Vec<Guide> {
    all(&Config::default(), &variables()).unwrap()
}

fn with_folder(folder: &Path) -> Result<Vec<Guide>, GuideError> {
    let mut config = Config::default();
    config.docs.pages = Some(folder.to_owned());
    all(&config, &variables())
}

#[test]
fn each_guide_renders_with_its_values() {
    let guides = ours();
    assert_eq!(guides.iter().map(|guide| &*guide.name).collect::<Vec<_>>(), OWN.map(|(name, _)| name));
    for Guide { name, title, summary, html, headings } in &guides {
        assert!(!title.is_empty() && !summary.is_empty() && headings.len() > 2, "{name}");
        assert!(!html.contains("{{") && !html.contains("<Data>"), "{name}");
    }
    let all: String = guides.iter().map(|guide| guide.html.as_str()).collect();
    for value in ["Acme &lt;Data&gt;", "https://api.example.com/price", "2 free credits", "costs 0.01 credits"] {
        assert!(all.contains(value), "{value}");
    }
}

#[test]
fn links_lead_to_pages_and_headings_that_exist() {
    let guides = ours();
    let mut known: BTreeMap<String, BTreeSet<String>> = PAGES
        .iter()
        .map(|(path, fragments)| ((*path).to_owned(), fragments.iter().map(|id| (*id).to_owned()).collect()))
        .collect();
    for guide in &guides {
        let ids = guide.headings.iter().map(|heading| heading.id.clone()).collect();
        known.insert(format!("{GUIDES_PAGE}/{}", guide.name), ids);
    }
    for guide in &guides {
        let own = format!("{GUIDES_PAGE}/{}", guide.name);
        let links: Vec<_> = guide.html.split("<a href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(!links.is_empty(), "{own}");
        for link in links.into_iter().filter(|link| !link.starts_with("https://")) {
            let (path, fragment) = link.split_once('#').unwrap_or((link, ""));
            let ids = known.get(if path.is_empty() { own.as_str() } else { path });
            assert!(ids.is_some_and(|ids| fragment.is_empty() || ids.contains(fragment)), "{own} links to {link}");
        }
    }
    // A link to anything but a page of the site would be shown as text.
    for (name, text) in OWN {
        for (place, _) in text.match_indices("](") {
            let target = text[place + 2..].split(')').next().unwrap();
            assert!(site_link(target).is_some(), "{name} links to {target}");
        }
    }
}

#[test]
fn every_error_is_explained_by_a_section() {
    let guides = ours();
    for section in ErrorCode::ALL.iter().map(|code| code.guide()).chain([OPERATORS_SECTION]) {
        let (name, id) = section.split_once('#').unwrap();
        let guide = guides.iter().find(|guide| guide.name == name);
        assert!(guide.is_some_and(|guide| guide.headings.iter().any(|heading| heading.id == id)), "{section}");
    }
}

#[test]
fn links_of_the_repository_lead_to_pages() {
    // link, its target
    let table = [
        ("errors.md", Some("/docs/guides/errors")),
        ("rate-limits.md#retry", Some("/docs/guides/rate-limits#retry")),
        ("#retry", Some("#retry")),
        ("/docs#tag-keys", Some("/docs#tag-keys")),
        ("https://example.com/a.md", Some("https://example.com/a.md")),
        ("../protocol.md", None),
        ("Errors.md", None),
        ("javascript:alert(1).md", None),
    ];
    for (link, to) in table {
        assert_eq!(site_link(link).as_deref(), to, "{link}");
    }
}

#[test]
fn pages_of_the_operator_follow_ours_or_replace_them() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("our-data.md", "\u{feff}# Our data\n\nFrom {{ brand }}. <b>x</b>, {{ unknown }}");
    write("a-tour.md", "A tour\n======\n\nSee [keys](keys.md).");
    write("keys.md", "# Our keys\n");
    write("notes.txt", "no page");
    write(".draft.md", "no page");
    let guides = with_folder(folder.path()).unwrap();
    let names: Vec<_> = guides.iter().map(|guide| (&*guide.name, &*guide.title)).collect();
    assert_eq!(names.len(), OWN.len() + 2);
    assert_eq!(names[OWN.len()..], [("a-tour", "A tour"), ("our-data", "Our data")]);
    let place = OWN.iter().position(|(name, _)| *name == "keys").unwrap();
    assert_eq!(names[place], ("keys", "Our keys"), "in the place of ours");
    let html = &guides[OWN.len() + 1].html;
    assert!(html.contains("From Acme &lt;Data&gt;. &lt;b&gt;x&lt;/b&gt;, {{ unknown }}"), "{html}");
    assert!(guides[OWN.len()].html.contains("<a href=\"/docs/guides/keys\">"));
}

#[test]
fn pages_that_cannot_be_shown_are_errors_that_name_the_file() {
    let long = vec![b'#'; 256 * 1024 + 1];
    // name, content, a part of the message
    let table: [(&str, &[u8], &str); 5] = [
        ("no-title.md", b"Just text.", "no-title.md: has no heading"),
        ("bytes.md", b"# A\n\xff", "bytes.md: is not UTF-8 text"),
        ("long.md", &long, "long.md: is larger than 256 KiB"),
        ("Two Words.md", b"# A", "Two Words.md: is not a name for a page"),
        ("-a.md", b"# A", "-a.md: is not a name for a page"),
    ];
    for (name, content, part) in table {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(name), content).unwrap();
        let error = with_folder(folder.path()).unwrap_err().to_string();
        assert!(error.starts_with("configuration key docs.pages: ") && error.contains(part), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder.md")).unwrap();
    let error = with_folder(folder.path()).unwrap_err().to_string();
    assert!(error.ends_with("folder.md: is not a regular file"), "{error}");
    let error = with_folder(Path::new("/nonexistent/pages")).unwrap_err().to_string();
    assert!(error.starts_with("configuration key docs.pages: /nonexistent/pages: "), "{error}");
}
