//! The examples of configurations and catalogues in the documents load; every key is documented, and no document names
//! one that does not exist.

use std::collections::BTreeSet;
use std::path::Path;

use metering_core::Catalogue;
use metering_tests::documents::{Document, documents, root};

use crate::packaged_configuration::{keys, loaded};

/// How files of other programs begin.
const OTHER_FILES: [(&str, &str); 3] = [
    ("[mcp_servers.metering]", "the configuration of an MCP client"),
    ("[dependencies]", "a package's manifest"),
    ("[env]", "Cargo's configuration"),
];

/// Words that look like a key's name, or its variable's, but are not.
const NO_KEYS: [(&str, &str); 10] = [
    ("limits.output_tokens", "a key of catalogues"),
    ("log.checkpoint", "a file"),
    ("log.checkpoint.evidence", "a file"),
    ("log.pem.last", "a file"),
    ("signup.json", "a file"),
    ("webhooks.mjs", "a file"),
    ("port", "a variable that Kubernetes sets"),
    ("port_80_tcp_addr", "a variable that Kubernetes sets"),
    ("service_host", "a variable that Kubernetes sets"),
    ("migrate_to", "a variable of the command line"),
];

/// The beginnings of catalogue fragments, with the text to put before and after each.
const CATALOGUE_PARTS: [(&str, &str, &str); 4] = [
    (r#"{"path""#, "", ""),
    (r#""price""#, r#"{"path": "/x", "method": "POST", "metered": true, "#, "}"),
    (
        r#""report""#,
        r#"{"path": "/x", "method": "POST", "metered": true, "price": {"max": "1",
            "units": {"input_tokens": "0.1", "cached_input_tokens": "0.1", "output_tokens": "0.1"}, "#,
        "}}",
    ),
    (
        r#""models""#,
        r#"{"path": "/x", "method": "POST", "metered": true, "upstream": ["azure", "router"],
            "price": {"model": {"json": "/model"},
                "report": {"json": {"input_tokens": "/in", "output_tokens": "/out"}}, "#,
        "}}",
    ),
];

/// The catalogue that a piece of JSON is, or belongs to.
fn catalogue(json: &str) -> Option<String> {
    if json.contains("\"endpoints\": [") {
        return Some(json.to_owned());
    }
    let (_, before, after) = CATALOGUE_PARTS.iter().find(|(start, ..)| json.starts_with(start))?;
    Some(format!(r#"{{"market": "M", "version": 1, "endpoints": [{before}{json}{after}]}}"#))
}

/// The files that a document shows: language or extension, and content.
fn files(document: &Document) -> Vec<(String, String)> {
    let written = document.code_blocks.iter().filter_map(|block| block.script()).flat_map(|script| script.files);
    let written = written.filter_map(|(name, text)| Some((name.rsplit_once('.')?.1.to_owned(), text)));
    let shown = document.code_blocks.iter().map(|block| (block.language.clone(), block.text.clone()));
    shown.chain(written).collect()
}

#[test]
fn examples_of_configurations_and_catalogues_load() {
    let (mut wrong, mut loads) = (Vec::new(), 0);
    for (file, document) in documents() {
        for (kind, text) in files(&document) {
            let is_other = OTHER_FILES.iter().any(|(start, _)| text.starts_with(start));
            let problem = match kind.as_str() {
                "toml" if !is_other => {
                    // Sections about what clients see need it, and most examples show a single section.
                    let url =
                        if text.contains("public_url") { "" } else { "public_url = \"https://api.example.com\"\n" };
                    loaded(&format!("{url}{text}")).err()
                }
                "json" => match catalogue(&text) {
                    Some(text) => Catalogue::from_json(&text).err().map(|error| error.to_string()),
                    None => continue,
                },
                _ => continue,
            };
            loads += 1;
            wrong.extend(problem.map(|problem| format!("{}: {problem}\n{text}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(loads > 35, "{loads}");
}

fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The keys documented by a section's tables, and the names in the rest of their rows.
fn documented(file: &str, heading: &str, section: &str) -> (BTreeSet<String>, BTreeSet<String>) {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let (_, text) = text.split_once(&format!("\n{heading}\n")).unwrap();
    let (mut keys, mut below) = (BTreeSet::new(), BTreeSet::new());
    for row in text.lines().take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `")) {
        let (first, rest) = row.trim_start_matches('|').split_once(" | ").unwrap();
        let mut before = String::new();
        for name in code(first) {
            let key = match (name.strip_prefix('.'), before.rsplit_once('.')) {
                (Some(last), Some((section, _))) => format!("{section}.{last}"),
                _ if name.contains('.') => name.trim_matches(['[', ']']).to_owned(),
                _ => format!("{section}{name}"),
            };
            below.extend(code(rest).map(|name| format!("{key}.{name}")));
            before.clone_from(&key);
            keys.insert(key);
        }
    }
    (keys, below)
}

#[test]
fn documents_name_every_key_and_no_others() {
    let mut schema = BTreeSet::new();
    assert!(keys("", &mut schema));
    let is_key = |name: &str| {
        let below = format!("{name}.");
        let headers = name.starts_with("gateway.upstream_headers.");
        headers || schema.contains(name) || schema.iter().any(|key| key.starts_with(&below))
    };
    let (mut named, mut below) = documented("docs/operating.md", "## Configuration keys", "");
    named.retain(|key| !key.starts_with("chains."));
    let (chains, _) = documented("docs/payments.md", "## A chain", "chains.base.");
    named.extend(chains);
    let unknown: Vec<_> = named.iter().filter(|key| !is_key(key)).collect();
    assert!(unknown.is_empty(), "the tables of keys have {unknown:?}");
    below.append(&mut named);
    let missing: Vec<_> = schema.difference(&below).collect();
    assert!(missing.is_empty(), "no table of keys has {missing:?}");

    let sections: BTreeSet<_> = schema.iter().filter_map(|key| Some(key.split_once('.')?.0)).collect();
    let mut wrong = Vec::new();
    // Decision records use the names of their time.
    for (file, document) in documents().iter().filter(|(file, _)| !file.starts_with(Path::new("docs/adr"))) {
        for span in &document.code_spans {
            let name = match span.code.strip_prefix("METERING_") {
                Some(variable) => variable.split('=').next().unwrap_or_default().to_lowercase().replace("__", "."),
                None => span.code.trim_matches(['[', ']']).replace("chains.NAME", "chains.base"),
            };
            let is_name =
                !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._".contains(&byte));
            let is_variable = span.code.starts_with("METERING_") && !name.starts_with("client_");
            let is_below = name.split_once('.').is_some_and(|(section, _)| sections.contains(section));
            let is_known = || is_key(&name) || NO_KEYS.iter().any(|(known, _)| *known == name);
            if is_name && !name.contains("..") && (is_variable || is_below) && !is_known() {
                wrong.push(format!("{} names `{}`, which is no key", file.display(), span.code));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
