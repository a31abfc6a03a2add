//! Moving in and out: every balance is equal, keys work unchanged, and an import that was killed is run again.

mod accounts;
mod agenthub;
mod hub;

use std::fs;

use serde_json::Value;

use crate::fixture::{Fixture, RunOutput};

fn import(fixture: &Fixture, file: &str, format: &str, more: &[&str]) -> RunOutput {
    fixture.admin(&[&["import", "--from", file, "--format", format], more].concat())
}

/// The report of an import that succeeds.
fn report(fixture: &Fixture, file: &str, format: &str) -> Value {
    import(fixture, file, format, &["--json"]).success().json()
}

/// The kinds of what is odd, in the order of the report.
fn oddities(report: &Value) -> Vec<&str> {
    report["oddities"].as_array().unwrap().iter().map(|oddity| oddity["kind"].as_str().unwrap()).collect()
}

/// What another service could take over.
fn exported(fixture: &Fixture) -> String {
    fixture.admin(&["export", "accounts", "--with-hashes", "--format", "jsonl"]).success().stdout
}

fn write(fixture: &Fixture, name: &str, text: &str) {
    fs::write(fixture.path(name), text).unwrap();
}
