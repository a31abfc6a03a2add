//! Moving in and out: every balance is equal, keys work unchanged, and an import that was killed is run again.

mod accounts;
mod agenthub;
mod hub;

use metering_core::ApiKey;
use serde_json::Value;

use crate::program::Program;

/// The report of an import that succeeds.
fn report(program: &Program, file: &str, format: &str) -> Value {
    program.json(&format!("import --from {file} --format {format}"))
}

/// Numbers of a report.
fn counts<const N: usize>(report: &Value, names: [&str; N]) -> [u64; N] {
    names.map(|name| report[name].as_u64().unwrap())
}

/// The kinds of what is odd, in the order of the report.
fn oddities(report: &Value) -> Vec<&str> {
    report["oddities"].as_array().unwrap().iter().map(|oddity| oddity["kind"].as_str().unwrap()).collect()
}

/// What another service could take over.
fn exported(program: &Program) -> String {
    program.run("export accounts --with-hashes --format jsonl").success()
}

fn hash_of(key: &str) -> String {
    hex::encode(ApiKey::parse(key).unwrap().hash().as_bytes())
}
