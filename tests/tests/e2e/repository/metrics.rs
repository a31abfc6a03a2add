//! The documents list the metrics that the server declares, and no others.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use metering_tests::documents::{documents, root};

/// The recorder has no counters with a fraction, so the server writes this one itself.
const WRITTEN: (&str, &str) = ("metering_commit_seconds_total", "counter");

/// Other names that begin like metrics: a cookie, a field that Stripe keeps, and a group of metrics.
const OTHER_NAMES: [&str; 3] = ["metering_session", "metering_account", "metering_upstream_*"];

fn sources(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let files = files.iter().map(|file| fs::read_to_string(file).unwrap());
    files.chain(folders.iter().flat_map(|folder| sources(folder))).collect()
}

/// The names of the metrics that a source declares with the macros of `operations/metric.rs`, and their kinds.
fn declared(source: &str) -> Vec<(String, &'static str)> {
    let of = |kind: &'static str| {
        let declarations = source.split(&format!("{kind}!(")).skip(1).collect::<Vec<_>>();
        let names = declarations.into_iter().filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        names.map(move |name| (name.to_owned(), kind)).collect::<Vec<_>>()
    };
    ["counter", "gauge", "histogram"].into_iter().flat_map(of).filter(|(name, _)| name != "name").collect()
}

/// The rows of the table of metrics.
fn documented(text: &str) -> BTreeMap<String, &str> {
    let rows = text.lines().map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
    let metrics = rows.filter_map(|cells| match cells.as_slice() {
        ["", name, kind @ ("counter" | "gauge" | "histogram"), ..] => Some((name.trim_matches('`').to_owned(), *kind)),
        _ => None,
    });
    metrics.collect()
}

#[test]
fn every_metric_is_declared_once_and_documented() {
    let mut found = BTreeMap::from([(WRITTEN.0.to_owned(), WRITTEN.1)]);
    for (name, kind) in sources(&root().join("metering-server/src")).iter().flat_map(|source| declared(source)) {
        assert!(found.insert(name.clone(), kind).is_none(), "{name} is declared twice");
    }
    assert!(found.len() > 50, "{found:?}");
    let operating = fs::read_to_string(root().join("docs/operating.md")).unwrap();
    assert_eq!(documented(&operating), found, "the table of metrics in docs/operating.md, and the declarations");
    let mut unknown = Vec::new();
    // The changelog's entries on earlier versions were true then.
    for (file, document) in documents().iter().filter(|(file, _)| file.as_path() != Path::new("CHANGELOG.md")) {
        for name in document.code_spans.iter().map(|span| span.code.split(['{', ' ', '(']).next().unwrap_or_default()) {
            let mut series = ["", "_bucket", "_sum", "_count"].iter().filter_map(|part| name.strip_suffix(*part));
            let is_metric = series.any(|name| found.contains_key(name));
            let is_crate = root().join(name.split("::").next().unwrap_or_default().replace('_', "-")).is_dir();
            if name.starts_with("metering_") && !is_metric && !is_crate && !OTHER_NAMES.contains(&name) {
                unknown.push(format!("{} names {name}", file.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
}
