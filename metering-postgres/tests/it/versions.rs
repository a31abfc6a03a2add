//! Schemas of earlier versions.

use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use metering_tests::postgres::run_in;

/// The version of the schema.
pub(crate) fn version(url: &str) -> usize {
    run_in(url, "SELECT version FROM metering_schema").parse().unwrap()
}

/// The version that a store migrates to.
pub(crate) fn current() -> usize {
    scripts().len() + metering_sql::schema::STEPS.len()
}

/// Creates the schema of version 2.
pub(crate) fn version_two(url: &str) {
    run_in(
        url,
        "CREATE TABLE metering_schema (id SMALLINT PRIMARY KEY CHECK (id = 1), version BIGINT NOT NULL); \
         INSERT INTO metering_schema VALUES (1, 0);",
    );
    migrate(url, 1..=2);
}

/// Creates the schema of version 6 as a server of that version leaves it. Usage lines have digests only then.
pub(crate) fn version_six(url: &str) {
    version_two(url);
    migrate(url, 3..=6);
    run_in(
        url,
        "DROP TABLE activity_entry; ALTER TABLE usage_line ALTER COLUMN digest SET NOT NULL; \
         CREATE UNIQUE INDEX usage_line_digest ON usage_line (digest);",
    );
}

/// Creates the schema of version 7, as a server of that version leaves it.
pub(crate) fn version_seven(url: &str) {
    version_six(url);
    migrate(url, 7..=7);
}

/// Runs the scripts of these versions.
pub(crate) fn migrate(url: &str, versions: RangeInclusive<usize>) {
    let version = *versions.end();
    let scripts = scripts()[versions.start() - 1..version].join("\n");
    run_in(url, &format!("{scripts}\nUPDATE metering_schema SET version = {version};"));
}

fn scripts() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/migrations");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "sql")).collect();
    files.sort();
    files.iter().map(|file| fs::read_to_string(file).unwrap()).collect()
}
