//! Parses plans as a file or a service lists them. Lenient, since other programs write them: numbers may be strings,
//! and unknown fields are ignored. Amounts never pass through a float.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use metering_core::Credits;
use metering_core::chains::Address;
use metering_core::payments::{PaymentKind, Plan, TokenAmount};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A list of plans that are not parsed yet, so that errors can name the plan and exact numbers are read from their
/// digits.
#[derive(Debug)]
pub(super) struct PlanList<'a> {
    pub(super) plans: Vec<&'a RawValue>,
    /// The recipient on each chain; `None` if the list does not come from a service.
    recipients: Option<BTreeMap<u64, Address>>,
}

/// The fields read from the response to `GET /credits/plans`.
#[derive(Deserialize)]
struct PriceList<'a> {
    #[serde(borrow)]
    plans: Vec<&'a RawValue>,
    chains: Option<Vec<PublishedChain>>,
}

#[derive(Deserialize)]
struct PublishedChain {
    chain_id: Exact<u64>,
    recipient: Option<Address>,
}

/// A plan, parsed leniently.
#[derive(Debug, Deserialize)]
pub(super) struct ListedPlan {
    id: String,
    chain_id: Exact<u64>,
    #[serde(default)]
    token_symbol: String,
    payment_kind: PaymentKind,
    credits: Exact<Credits>,
    bonus_credits: Option<Exact<Credits>>,
    token_amount: Exact<Price>,
    #[serde(default, deserialize_with = "address")]
    token_contract: Option<Address>,
    token_decimals: Exact<u8>,
    label: String,
    description: Option<String>,
    offer: Option<String>,
    discount_percent: Option<Exact<u8>>,
    active: Option<Switch>,
    #[serde(default, deserialize_with = "address")]
    recipient: Option<Address>,
    sort_order: Option<Exact<i32>>,
}

/// The fields of a plan, and the extra ones that services print.
const FIELDS: &str = "id chain_id token_symbol payment_kind credits bonus_credits token_amount token_contract \
                      token_decimals label description offer discount_percent active recipient sort_order rpc_url buys";

impl<'a> PlanList<'a> {
    /// Reads an array of plans, or an object with one.
    pub(super) fn read(text: &'a str) -> Result<Self, String> {
        let list = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map(|plans| Self { plans, recipients: None })
        } else {
            serde_json::from_str::<PriceList<'_>>(text).map(|PriceList { plans, chains }| {
                let recipient = |chain: PublishedChain| Some((chain.chain_id.0, chain.recipient?));
                Self { plans, recipients: chains.map(|chains| chains.into_iter().filter_map(recipient).collect()) }
            })
        };
        list.map_err(|error| format!("expected an array of plans, or an object with \"plans\": {error}"))
    }

    /// The sort order of a plan without one: a published list is already in order.
    pub(super) fn position(&self, number: i32) -> i32 {
        if self.recipients.is_some() { number } else { 0 }
    }

    /// The recipient on a chain, according to the list.
    pub(super) fn recipient(&self, chain_id: u64) -> Option<Address> {
        self.recipients.as_ref()?.get(&chain_id).copied()
    }
}

impl ListedPlan {
    pub(super) fn chain_id(&self) -> u64 {
        self.chain_id.0
    }

    /// The names of unknown fields.
    pub(super) fn unknown_fields(raw: &RawValue) -> Result<Vec<String>, serde_json::Error> {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(raw.get())?;
        Ok(fields.into_keys().filter(|name| !FIELDS.split(' ').any(|field| field == name)).collect())
    }

    /// The plan. `position` is its sort order if it has none. `usual` is the chain's recipient, which is not repeated
    /// in the plan.
    pub(super) fn plan(self, position: i32, usual: Option<Address>) -> Plan {
        Plan {
            id: self.id,
            chain_id: self.chain_id.0,
            token_symbol: self.token_symbol,
            payment_kind: self.payment_kind,
            credits: self.credits.0,
            bonus_credits: self.bonus_credits.map_or(Credits::ZERO, |bonus| bonus.0),
            token_amount: self.token_amount.0.0,
            token_contract: self.token_contract.unwrap_or(Address::ZERO),
            token_decimals: self.token_decimals.0,
            label: self.label,
            description: self.description.unwrap_or_default(),
            offer: self.offer,
            discount_percent: self.discount_percent.map(|percent| percent.0),
            active: self.active.is_none_or(|active| active.0),
            recipient: self.recipient.filter(|recipient| Some(*recipient) != usual),
            sort_order: self.sort_order.map_or(position, |order| order.0),
        }
    }
}

/// A number, or a string that contains one, parsed from its digits.
#[derive(Debug)]
struct Exact<T>(T);

/// The expected form of an [`Exact`], for error messages.
trait Described {
    const EXPECTED: &str;
}

impl Described for u64 {
    const EXPECTED: &str = "a whole number";
}

impl Described for u8 {
    const EXPECTED: &str = "a whole number from 0 to 255";
}

impl Described for i32 {
    const EXPECTED: &str = "a whole number";
}

impl Described for Credits {
    const EXPECTED: &str = "an amount of credits";
}

impl Described for Price {
    const EXPECTED: &str = "an amount of a token";
}

/// A price: [`TokenAmount`] has no `FromStr` of its own.
#[derive(Debug)]
struct Price(TokenAmount);

impl FromStr for Price {
    type Err = metering_core::money::DecimalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        TokenAmount::parse(text).map(Self)
    }
}

impl<'de, T> Deserialize<'de> for Exact<T>
where
    T: FromStr + Described,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let digits = match raw.get().starts_with('"') {
            true => serde_json::from_str::<String>(raw.get()).map_err(D::Error::custom)?,
            false => raw.get().to_owned(),
        };
        let shown: String = raw.get().chars().take(40).collect();
        let parsed = digits.parse();
        parsed.map(Self).map_err(|error| D::Error::custom(format_args!("{shown} is not {}: {error}", T::EXPECTED)))
    }
}

/// Whether a plan is on sale: a boolean, or 1 or 0 as databases print it.
#[derive(Debug)]
struct Switch(bool);

impl<'de> Deserialize<'de> for Switch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SwitchVisitor)
    }
}

struct SwitchVisitor;

impl Visitor<'_> for SwitchVisitor {
    type Value = Switch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true, false, 1 or 0")
    }

    fn visit_bool<E: Error>(self, on: bool) -> Result<Switch, E> {
        Ok(Switch(on))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Switch, E> {
        match number {
            0 | 1 => Ok(Switch(number == 1)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Unsigned(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Switch, E> {
        match text {
            "1" | "true" => Ok(Switch(true)),
            "0" | "false" => Ok(Switch(false)),
            _ => Err(E::invalid_value(serde::de::Unexpected::Str(text), &self)),
        }
    }
}

/// An address; `None` if the string is empty.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Address>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.filter(|text| !text.is_empty()) {
        Some(text) => text.parse().map(Some).map_err(|error| D::Error::custom(format_args!("{text:?}: {error}"))),
        None => Ok(None),
    }
}
