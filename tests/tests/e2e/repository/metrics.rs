//! The documents list the metrics that the server declares, and no others.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The recorder has no counters with a fraction, so the server writes this one itself.
const WRITTEN: (&str, &str) = ("metering_commit_seconds_total", "counter");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

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
}
