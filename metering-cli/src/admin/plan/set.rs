//! `plan set`: creates a plan, or changes some of its fields.

use std::io::Write;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use metering_admin::calls::plans::ListPlans;
use metering_core::Credits;
use metering_core::chains::Address;
use metering_core::money::DecimalError;
use metering_core::payments::{PaymentKind, Plan, PlanKey, TokenAmount};

use super::sale::KeyArgs;
use super::unconfigured;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};

/// Create a plan, or change some of its fields.
#[derive(Debug, Args)]
#[command(after_help = "\
Fields that are not given stay as they are. A new plan needs --token-symbol, --payment-kind, --credits, --token-amount,
--token-decimals and --label; a token plan also needs --token-contract. Also creates the store if there is none yet.

Examples:
  metering admin plan set starter --chain-id 1 --label Starter --credits 10 --payment-kind native_value \
--token-symbol ETH --token-amount 0.0025 --token-decimals 18
  metering admin plan set starter --chain-id 1 --token-amount 0.003 --clear offer")]
pub(crate) struct SetArgs {
    #[command(flatten)]
    key: KeyArgs,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    format: Format,
}

/// The fields of a plan. Only those given are changed.
#[derive(Debug, Default, Args)]
struct Fields {
    /// The token's symbol.
    #[arg(long, value_name = "SYMBOL")]
    token_symbol: Option<String>,
    /// How the plan is paid.
    #[arg(long, value_name = "KIND", value_parser = PossibleValuesParser::new(["erc20", "native_value"]).map(kind))]
    payment_kind: Option<PaymentKind>,
    /// The credits that the plan sells.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    credits: Option<Credits>,
    /// The bonus credits on top.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    bonus_credits: Option<Credits>,
    /// The price in the token's display unit, such as 5.25.
    #[arg(long, value_name = "AMOUNT", value_parser = token_amount, allow_negative_numbers = true)]
    token_amount: Option<TokenAmount>,
    /// The token's contract.
    #[arg(long, value_name = "ADDRESS")]
    token_contract: Option<Address>,
    /// The token's decimals.
    #[arg(long, value_name = "N")]
    token_decimals: Option<u8>,
    /// The display name.
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// A one-sentence description.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// The name of a special offer.
    #[arg(long, value_name = "TEXT")]
    offer: Option<String>,
    /// The discount in percent, for display only.
    #[arg(long, value_name = "N")]
    discount_percent: Option<u8>,
    /// Whether the plan is on sale.
    #[arg(long, value_name = "BOOL")]
    active: Option<bool>,
    /// The recipient, if not the chain's.
    #[arg(long, value_name = "ADDRESS")]
    recipient: Option<Address>,
    /// The position in lists, lowest first.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    sort_order: Option<i32>,
    /// Clear this field.
    #[arg(long, value_name = "FIELD")]
    clear: Vec<Clear>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Clear {
    Offer,
    DiscountPercent,
    Recipient,
}

fn kind(name: String) -> PaymentKind {
    if name == "erc20" { PaymentKind::Erc20 } else { PaymentKind::NativeValue }
}

fn token_amount(text: &str) -> Result<TokenAmount, DecimalError> {
    TokenAmount::parse(text)
}

impl SetArgs {
    pub(crate) async fn run(self: Box<Self>, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key = self.key.key();
        let before = match session.administrator_if_any().await? {
            Some(administrator) => {
                administrator.get::<ListPlans>(()).await?.plans.into_iter().find(|plan| plan.key() == key)
            }
            None => None,
        };
        let plan = match before {
            Some(plan) => self.fields.change(plan),
            None => self.fields.make(&key)?,
        };
        plan.validate().map_err(|error| Failure::Usage(error.to_string()))?;
        unconfigured::warn(session, std::slice::from_ref(&plan));
        // Open the store only now, so that an invalid plan does not create an empty one.
        session.administrator_or_new().await?.put_plans(vec![plan.clone()]).await?;
        if self.format.json {
            return write_json(out, &plan);
        }
        let state = if plan.active { "on sale" } else { "off sale" };
        Ok(writeln!(out, "Plan {key} was saved and is {state}.")?)
    }
}

impl Fields {
    fn change(self, mut plan: Plan) -> Plan {
        fn replace<T>(field: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *field = value;
            }
        }
        replace(&mut plan.token_symbol, self.token_symbol);
        replace(&mut plan.payment_kind, self.payment_kind);
        replace(&mut plan.credits, self.credits);
        replace(&mut plan.bonus_credits, self.bonus_credits);
        replace(&mut plan.token_amount, self.token_amount);
        replace(&mut plan.token_contract, self.token_contract);
        replace(&mut plan.token_decimals, self.token_decimals);
        replace(&mut plan.label, self.label);
        replace(&mut plan.description, self.description);
        replace(&mut plan.active, self.active);
        replace(&mut plan.sort_order, self.sort_order);
        let keep = |field| !self.clear.contains(&field);
        plan.offer = self.offer.or(plan.offer).filter(|_| keep(Clear::Offer));
        plan.discount_percent =
            self.discount_percent.or(plan.discount_percent).filter(|_| keep(Clear::DiscountPercent));
        plan.recipient = self.recipient.or(plan.recipient).filter(|_| keep(Clear::Recipient));
        plan
    }

    fn make(mut self, key: &PlanKey) -> Result<Plan, Failure> {
        let missing = |flag: &str| Failure::Usage(format!("plan {key} does not exist yet; a new plan needs --{flag}"));
        let plan = Plan {
            id: key.id.clone(),
            chain_id: key.chain_id,
            token_symbol: self.token_symbol.take().ok_or_else(|| missing("token-symbol"))?,
            payment_kind: self.payment_kind.take().ok_or_else(|| missing("payment-kind"))?,
            credits: self.credits.take().ok_or_else(|| missing("credits"))?,
            bonus_credits: Credits::ZERO,
            token_amount: self.token_amount.take().ok_or_else(|| missing("token-amount"))?,
            token_contract: Address::ZERO,
            token_decimals: self.token_decimals.take().ok_or_else(|| missing("token-decimals"))?,
            label: self.label.take().ok_or_else(|| missing("label"))?,
            description: String::new(),
            offer: None,
            discount_percent: None,
            active: true,
            recipient: None,
            sort_order: 0,
        };
        Ok(self.change(plan))
    }
}
