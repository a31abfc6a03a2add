//! The operator's colour, mark and texts on every page.

use super::*;

#[test]
fn pages_link_to_the_check_of_receipts_if_the_service_signs_them() {
    for (toml, expected) in [("", false), ("receipts.key_file = 'receipts.pem'", true)] {
        for (path, reply) in all(&pages_of(toml)) {
            let links = attributes(body(&reply), "href");
            assert_eq!(links.iter().any(|link| link == "/verify-receipt"), expected, "{path}");
        }
    }
}

#[test]
fn the_accent_reaches_styles_and_icon_under_new_names() {
    let (plain, pink) = (pages_of(""), pages_of("[brand]\naccent = '#c026d3'"));
    let linked = |pages: &Pages, extension: &str| {
        let links = attributes(body(&get(pages, "/metering")), "href");
        links.into_iter().find(|link| link.ends_with(extension)).unwrap()
    };
    for extension in [".css", ".svg"] {
        let path = linked(&pink, extension);
        assert_ne!(linked(&plain, extension), path);
        assert!(body(&get(&pink, &path)).contains("#c026d3"), "{path}");
    }
    assert_eq!(linked(&plain, ".woff2"), linked(&pink, ".woff2"));
    assert!(body(&get(&pink, "/favicon.ico")).contains("#c026d3"));
}

#[test]
fn the_mark_of_the_operator_replaces_ours() {
    let folder = tempfile::tempdir().unwrap();
    let with_mark = |name: &str, content: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, content).unwrap();
        pages_of(&format!("public_url = 'https://api.example.com/'\n[brand]\nmark = '{}'", file.display()))
    };
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1 1\"/>";
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01";
    // file, content, type, whether previews have it
    let table: [(&str, &[u8], &str, bool); 2] =
        [("a.svg", svg.as_bytes(), "image/svg+xml", false), ("a.png", png, "image/png", true)];
    for (name, content, kind, in_previews) in table {
        let pages = with_mark(name, content);
        for page in [get(&pages, "/metering"), pages.console.reply(StatusCode::OK, &HeaderMap::new())] {
            let html = body(&page);
            assert!(html.contains("<img class=\"mark\" ") && !html.contains("<svg class=\"mark\""), "{name}: {html}");
            let mark = attributes(html, "src").into_iter().find(|path| path.starts_with("/assets/mark.")).unwrap();
            assert!(attributes(html, "href").contains(&mark), "{name} is the icon");
            for path in [mark.as_str(), "/favicon.ico"] {
                let image = get(&pages, path);
                assert_eq!((&image.body()[..], header(&image, "content-type")), (content, kind), "{path}");
                let policy = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
                assert_eq!(header(&image, "content-security-policy") == policy, kind == "image/svg+xml", "{path}");
            }
        }
        let page = get(&pages, "/metering");
        let image = attributes(body(&page), "content").into_iter().find(|value| value.contains("/assets/mark."));
        let expected = pages.assets.path("mark.png").map(|path| format!("https://api.example.com{path}"));
        assert_eq!((image.is_some(), image), (in_previews, expected), "{name}");
    }
    let invalid = toml::from_str("[brand]\nmark = '/nonexistent/mark.svg'").unwrap();
    let error = Pages::new(&invalid, &catalogue(), &Default::default(), BASE_URL).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/mark.svg"), "{error}");
}

#[test]
fn previews_of_links_have_title_description_and_known_url() {
    let brand = "[brand]\nname = 'Acme'\ntagline = 'Every \"trade\".'";
    let origin = "pages_url = 'https://account.example.com'\npublic_url = 'https://api.example.com'\n";
    for (toml, known) in [(brand.to_owned(), false), (format!("{origin}{brand}"), true)] {
        let page = get(&pages_of(&toml), "/metering/account");
        let values = attributes(body(&page), "content");
        assert_eq!(values.iter().filter(|value| *value == "Every &quot;trade&quot;.").count(), 2, "{values:?}");
        assert!(values.contains(&"Account · Acme".to_owned()), "{values:?}");
        assert_eq!(values.contains(&"https://account.example.com/metering/account".to_owned()), known, "{values:?}");
        assert_eq!(body(&page).contains("og:url"), known);
        assert!(!body(&page).contains("og:image"), "there is no image");
    }
}
