//! `plan import`: imports plans from a file, all or none.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use clap::Args;
use metering_core::payments::Plan;
use serde::Serialize;
use serde_json::value::RawValue;

use super::listed::{ListedPlan, PlanList};
use super::unconfigured;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, notice, write_json};

/// Import plans from a JSON file, all or none. A plan with the same id and chain is replaced.
#[derive(Debug, Args)]
#[command(after_help = "\
The file has an array of plans, or {\"plans\": [...]} as `metering admin plan list --json` prints it. Plans that it does
not mention stay as they are. Also creates the store if there is none yet.
docs/plans/base-and-ethereum.json is an example to start from: USDC and ETH on Base and Ethereum, in four sizes each,
with discounts. Set your own prices; the server's configuration says who is paid.

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

impl ImportArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let name =
            if self.file.as_os_str() == "-" { "standard input".to_owned() } else { self.file.display().to_string() };
        let text = self.read().map_err(|error| Failure::Failed(format!("cannot read {name}: {error}")))?;
        // Before opening the store, so that an invalid file does not leave an empty store behind.
        let parsed =
            parse(&text).map_err(|problem| Failure::Failed(format!("{name}: {problem}; nothing was imported")))?;
        print_notices(&parsed);
        unconfigured::warn(session, &parsed.plans);
        let imported = parsed.plans.len();
        session.administrator_or_new().await?.put_plans(parsed.plans).await?;
        if self.format.json {
            return write_json(out, &Document { imported });
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

/// The contents of a file.
#[derive(Debug)]
struct Parsed {
    plans: Vec<Plan>,
    /// Unknown fields of plans, which are ignored.
    ignored: BTreeSet<String>,
}

fn parse(text: &str) -> Result<Parsed, String> {
    let list = PlanList::read(text)?;
    let mut first_of = BTreeMap::new();
    let mut parsed = Parsed { plans: Vec::with_capacity(list.plans.len()), ignored: BTreeSet::new() };
    for (number, raw) in (1..).zip(&list.plans) {
        let invalid = |error: serde_json::Error| format!("plan {number}{}: {error}", name_of(raw));
        let listed: ListedPlan = serde_json::from_str(raw.get()).map_err(invalid)?;
        parsed.ignored.extend(ListedPlan::unknown_fields(raw).map_err(invalid)?);
        let usual = list.recipient(listed.chain_id());
        let plan = listed.plan(list.position(number), usual);
        plan.validate().map_err(|error| format!("entry {number}: {error}"))?;
        if let Some(first) = first_of.insert(plan.key(), number) {
            return Err(format!("plan {} appears twice, as entries {first} and {number}", plan.key()));
        }
        parsed.plans.push(plan);
    }
    Ok(parsed)
}

/// Warns about ignored fields, and about recipients from the file.
fn print_notices(parsed: &Parsed) {
    if !parsed.ignored.is_empty() {
        let names: Vec<&str> = parsed.ignored.iter().map(String::as_str).collect();
        notice(&format!("note: unknown fields were ignored: {}", names.join(", ")));
    }
    let recipients: BTreeSet<_> = parsed.plans.iter().filter_map(|plan| plan.recipient).collect();
    for recipient in recipients {
        let count = parsed.plans.iter().filter(|plan| plan.recipient == Some(recipient)).count();
        notice(&format!(
            "note: {count} of the plans have {} as their own recipient: payments for them go there",
            recipient.to_checksummed()
        ));
    }
}

/// The readable part of a plan's name, if the plan is invalid.
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
            let plans = parse(&text).unwrap().plans;
            assert_eq!(plans[0].credits.to_string(), "123456789.12345678");
            assert_eq!((plans[0].sort_order, plans[0].recipient), (0, None));
        }
        assert_eq!(parse("[]").unwrap().plans, []);
    }

    /// A list as other services publish it, with numbers in every known form.
    #[test]
    fn published_price_list_is_read_exactly() {
        let text = r#"{
            "plans": [
                {"id":"starter","chain_id":"8453","token_symbol":"USDC","payment_kind":"erc20","credits":"10.00000001",
                 "bonus_credits":0.5,"token_amount":5.25,"token_contract":"0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
                 "token_decimals":"6","label":"Starter","description":null,"offer":null,"discount_percent":"5",
                 "active":1,"recipient":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","rpc_url":"","epochs":72000},
                {"id":"own","chain_id":8453,"token_symbol":"ETH","payment_kind":"native_value","credits":123456789.12345678,
                 "bonus_credits":0,"token_amount":"0.1","token_contract":"","token_decimals":18,"label":"Own",
                 "description":"d","active":0,"recipient":"0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"}
            ],
            "chains": [{"chain_id":8453,"name":"base","rpc_url":"","recipient":"0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed",
                        "confirmations":12}],
            "terms_url": "x", "epoch_unit": {"credits_per_epoch": 0.0001388889}
        }"#;
        let Parsed { plans, ignored } = parse(text).unwrap();
        let [starter, own] = &plans[..] else { panic!("two plans") };
        assert_eq!((starter.chain_id, starter.token_decimals, starter.discount_percent), (8453, 6, Some(5)));
        assert_eq!(
            (starter.credits.to_string(), starter.bonus_credits.to_string()),
            ("10.00000001".into(), "0.5".into())
        );
        assert_eq!((starter.token_amount.to_string(), starter.active), ("5.25".to_owned(), true));
        assert_eq!((starter.description.as_str(), &starter.offer), ("", &None));
        assert_eq!(starter.recipient, None, "the chain's own recipient comes from the configuration");
        assert_eq!(
            own.recipient.map(|address| address.to_checksummed()).as_deref(),
            Some("0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359")
        );
        assert_eq!((own.credits.to_string(), own.active), ("123456789.12345678".to_owned(), false));
        assert_eq!((starter.sort_order, own.sort_order), (1, 2), "in the published order");
        assert_eq!(ignored.into_iter().collect::<Vec<_>>(), ["epochs"]);
    }

    #[test]
    fn invalid_plan_is_named() {
        let second = PLAN.replace("\"a\"", "\"b\"");
        let with = |from: &str, to: &str| format!("[{PLAN},{}]", second.replace(from, to));
        // text, message
        let table = [
            (format!("[{PLAN},{PLAN}]"), "a on chain 1 appears twice, as entries 1 and 2"),
            (with("123456789.12345678", "0"), "entry 2: plan b on chain 1: credits must be above zero"),
            (with("123456789.12345678", "\"five\""), "plan 2 (b on chain 1)"),
            (with("123456789.12345678", "true"), "plan 2 (b on chain 1)"),
            (with("123456789.12345678", "0.000000001"), "too many decimal places"),
            (with("\"label\"", "\"lable\""), "plan 2 (b on chain 1): missing field `label`"),
            (with("\"chain_id\":1,", ""), "plan 2 (b): missing field `chain_id`"),
            (with("\"chain_id\":1,", "\"chain_id\":\"one\","), "plan 2 (b): \"one\" is not a whole number"),
            (with("\"0.1\"", "\"free\""), "plan 2 (b on chain 1): \"free\" is not an amount of a token"),
            (with("\"ETH\"", "\"\""), "entry 2: plan b on chain 1: token_symbol must not be blank"),
            (with("\"ETH\"", "\"  \""), "token_symbol must not be blank"),
            (with("\"label\"", "\"active\":2,\"label\""), "plan 2 (b on chain 1)"),
            ("[5]".to_owned(), "plan 1: invalid type"),
            ("{\"plan\": []}".to_owned(), "missing field `plans`"),
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
