//! `plan import`: many plans from a file, all or none.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;
use metering_core::Plan;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, json_line};

/// Add plans from a JSON file, or replace those of the same id and chain; all of them or none.
#[derive(Debug, Args)]
#[command(after_help = "\
The file holds an array of plans, or {\"plans\": [...]} as `metering admin plan list --json` prints it. Plans that it
does not mention stay. Makes the store too, if there is none yet.
docs/plans/base-and-ethereum.json is an example to start from: USDC and ETH on Base and Ethereum, in four sizes each,
with their discounts. Prices are yours to set; who is paid is in the server's configuration.

Examples:
  metering admin plan import plans.json
  metering admin plan import - < plans.json")]
pub(crate) struct ImportArgs {
    /// The file, or - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    imported: usize,
}

/// Plans as they stand in the file. Raw, so that each can be named when it is wrong, and because exact numbers are
/// read from their text: an untagged enum would have made floats of them first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlansFile<'a> {
    #[serde(borrow)]
    plans: Vec<&'a RawValue>,
}

impl ImportArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let name =
            if self.file.as_os_str() == "-" { "standard input".to_owned() } else { self.file.display().to_string() };
        let text = self.read().map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
        // Before the store is opened: a file that is refused must not leave an empty store behind.
        let plans = parse(&text).map_err(|problem| Failure::Failed(format!("{name}: {problem}; nothing imported")))?;
        let imported = plans.len();
        session.store_or_new().await?.put_plans(plans).await?;
        if self.format.json {
            return json_line(out, &Document { imported });
        }
        let noun = if imported == 1 { "plan" } else { "plans" };
        Ok(writeln!(out, "{imported} {noun} imported.")?)
    }

    fn read(&self) -> io::Result<String> {
        if self.file.as_os_str() != "-" {
            return fs::read_to_string(&self.file);
        }
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        Ok(text)
    }
}

fn parse(text: &str) -> Result<Vec<Plan>, String> {
    let raw: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
    } else {
        serde_json::from_str::<PlansFile<'_>>(text).map(|file| file.plans)
    }
    .map_err(|error| format!("not an array of plans, nor an object with \"plans\": {error}"))?;
    let mut first_of = BTreeMap::new();
    let mut plans = Vec::with_capacity(raw.len());
    for (number, raw) in (1..).zip(raw) {
        let plan: Plan =
            serde_json::from_str(raw.get()).map_err(|error| format!("plan {number}{}: {error}", name_of(raw)))?;
        plan.validate().map_err(|error| format!("entry {number}: {error}"))?;
        if let Some(first) = first_of.insert(plan.key(), number) {
            return Err(format!("plan {} is there twice, as entries {first} and {number}", plan.key()));
        }
        plans.push(plan);
    }
    Ok(plans)
}

/// As much of the name of a plan as can be read, when the plan as a whole cannot.
fn name_of(raw: &RawValue) -> String {
    let object: serde_json::Value = serde_json::from_str(raw.get()).unwrap_or_default();
    match (object["id"].as_str(), object["chain_id"].as_u64()) {
        (Some(id), Some(chain)) => format!(" ({id} on chain {chain})"),
        (Some(id), None) => format!(" ({id})"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"id":"a","chain_id":1,"token_symbol":"ETH","payment_kind":"native_value",
        "credits":123456789.12345678,"token_amount":"0.1","token_decimals":18,"label":"A"}"#;

    #[test]
    fn both_forms_are_read_exactly() {
        for text in [format!("[{PLAN}]"), format!("\n {{\"plans\": [{PLAN}]}}")] {
            let plans = parse(&text).unwrap();
            assert_eq!(plans[0].credits.to_string(), "123456789.12345678");
        }
        assert_eq!(parse("[]").unwrap(), []);
    }

    #[test]
    fn the_bad_plan_is_named() {
        let second = PLAN.replace("\"a\"", "\"b\"");
        let with = |from: &str, to: &str| format!("[{PLAN},{}]", second.replace(from, to));
        // text, what the message says
        let table = [
            (format!("[{PLAN},{PLAN}]"), "a on chain 1 is there twice, as entries 1 and 2"),
            (with("123456789.12345678", "0"), "entry 2: plan b on chain 1: credits must be above zero"),
            (with("123456789.12345678", "\"5\""), "plan 2 (b on chain 1)"),
            (with("123456789.12345678", "0.000000001"), "too many decimal places"),
            (with("\"label\"", "\"lable\""), "plan 2 (b on chain 1): unknown field `lable`"),
            (with("\"chain_id\":1,", ""), "plan 2 (b): missing field `chain_id`"),
            (with("\"0.1\"", "0.1"), "plan 2 (b on chain 1): invalid type"),
            ("[5]".to_owned(), "plan 1: invalid type"),
            ("{\"plan\": []}".to_owned(), "unknown field `plan`"),
            ("{}".to_owned(), "missing field `plans`"),
            ("[".to_owned(), "EOF"),
            (String::new(), "EOF"),
        ];
        for (text, expected) in table {
            let message = parse(&text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
