//! Plans: a number of credits for a price in one token on one chain.

use std::fmt;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::chains::address::Address;
use crate::chains::chain::{Chain, Evidence};
use crate::chains::transaction::TxRef;
use crate::chains::units::TokenUnits;
use crate::money::credits::Credits;
use crate::money::decimal::{self, DecimalError};
use crate::payments::payment::{Payment, PaymentFault, PaymentTarget};

/// How a plan is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PaymentKind {
    /// In an ERC-20 token.
    Erc20,
    /// In the chain's native coin.
    NativeValue,
}

impl PaymentKind {
    /// The kind's name on the wire and in stores.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Erc20 => "erc20",
            Self::NativeValue => "native_value",
        }
    }
}

/// A plan's unique key: its id and its chain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanKey {
    /// The plan's id, unique on its chain.
    pub id: String,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
}

impl fmt::Display for PlanKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on chain {}", self.id, self.chain_id)
    }
}

/// An exact, positive amount of a token in human-readable units, such as `5` or `0.0025`; a string in JSON.
///
/// ```
/// use metering_core::chains::TokenUnits;
/// use metering_core::payments::TokenAmount;
///
/// let amount = TokenAmount::parse("0.0025")?;
/// assert_eq!(amount.to_units(6), Some(TokenUnits::new(2_500)));
/// assert_eq!(amount.to_units(3), None); // it needs four decimals
/// # Ok::<(), metering_core::money::DecimalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenAmount(Decimal);

impl TokenAmount {
    /// Reads an amount.
    ///
    /// # Errors
    /// When the text is not a decimal above zero that can be held exactly.
    pub fn parse(text: &str) -> Result<Self, DecimalError> {
        let value = decimal::parse_exact(text)?;
        if value <= Decimal::ZERO {
            return Err(DecimalError::OutOfRange);
        }
        Ok(Self(value.normalize()))
    }

    /// The amount.
    #[must_use]
    pub const fn value(self) -> Decimal {
        self.0
    }

    /// The amount in the smallest unit of a token with this many decimals; `None` when it has more decimal places or is
    /// out of range.
    #[must_use]
    pub fn to_units(self, decimals: u8) -> Option<TokenUnits> {
        let missing = u32::from(decimals).checked_sub(self.0.scale())?;
        let mantissa = u128::try_from(self.0.mantissa()).ok()?;
        mantissa.checked_mul(10_u128.checked_pow(missing)?).map(TokenUnits::new)
    }

    /// How many decimal places the amount needs.
    #[must_use]
    pub const fn decimal_places(self) -> u32 {
        self.0.scale()
    }
}

impl fmt::Display for TokenAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Serialize for TokenAmount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|error| serde::de::Error::custom(format_args!("token_amount: {error}")))
    }
}

/// A plan as an operator defines it; the JSON form is the one `metering admin plan import` reads.
///
/// ```
/// use metering_core::payments::Plan;
///
/// let mut plan: Plan = serde_json::from_str(
///     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
///         "bonus_credits": 0.5, "token_amount": "5", "token_contract": "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
///         "token_decimals": 6, "label": "Starter"}"#,
/// )?;
/// assert_eq!(plan.validate(), Ok(()));
/// assert_eq!(plan.credits_in_all(), "10.5".parse().ok());
/// assert_eq!(plan.price().map(|price| price.get()), Some(5_000_000));
/// plan.token_decimals = 2;
/// assert_eq!(plan.validate().unwrap_err().to_string(), "plan starter on chain 8453: token_decimals must be 3 to 36");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The plan's id, unique on its chain: 1 to 64 characters of `A-Z a-z 0-9 _ - .`.
    pub id: String,
    /// The chain it is paid on (EIP-155).
    pub chain_id: u64,
    /// The token's symbol.
    pub token_symbol: String,
    /// How it is paid.
    pub payment_kind: PaymentKind,
    /// The credits that it sells.
    pub credits: Credits,
    /// The credits that it adds as a bonus.
    #[serde(default)]
    pub bonus_credits: Credits,
    /// Its price, in human-readable units of the token.
    pub token_amount: TokenAmount,
    /// The token's contract; the zero address for the native coin.
    #[serde(default = "native_coin")]
    pub token_contract: Address,
    /// The token's decimals, 18 for most native coins.
    pub token_decimals: u8,
    /// Its display name.
    pub label: String,
    /// A sentence about it.
    #[serde(default)]
    pub description: String,
    /// A special offer's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<String>,
    /// The discount on the regular price, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discount_percent: Option<u8>,
    /// Whether it is on sale.
    #[serde(default = "on_sale")]
    pub active: bool,
    /// Who is paid, if not the chain's recipient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<Address>,
    /// Its position in the list, lowest first.
    #[serde(default)]
    pub sort_order: i32,
}

fn native_coin() -> Address {
    Address::ZERO
}

fn on_sale() -> bool {
    true
}

/// A plan with an invalid field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("plan {plan}: {field} {problem}")]
pub struct PlanError {
    /// The plan.
    pub plan: PlanKey,
    /// The field.
    pub field: &'static str,
    /// The problem with it.
    pub problem: &'static str,
}

impl Plan {
    /// The plan's unique key.
    #[must_use]
    pub fn key(&self) -> PlanKey {
        PlanKey { id: self.id.clone(), chain_id: self.chain_id }
    }

    /// The price in the token's smallest unit; `None` when it is out of range, which [`Plan::validate`] refuses.
    #[must_use]
    pub fn price(&self) -> Option<TokenUnits> {
        self.token_amount.to_units(self.token_decimals)
    }

    /// The plan's credits, bonus included; `None` when they are out of range, which [`Plan::validate`] refuses.
    #[must_use]
    pub fn credits_in_all(&self) -> Option<Credits> {
        self.credits.checked_add(self.bonus_credits)
    }

    /// Where the plan is paid, and in which token.
    #[must_use]
    pub fn target(&self, chain: &Chain) -> PaymentTarget {
        let recipient = self.recipient.unwrap_or(chain.recipient);
        PaymentTarget { chain_id: self.chain_id, token: self.token_contract, recipient }
    }

    /// Checks that a transaction buys this plan for an existing account: it must pay at least the price.
    ///
    /// With the chain of the example `sell_a_plan`:
    ///
    /// ```
    /// use metering_core::chains::{ChainReader, TransactionStatus, TxRef};
    /// # mod in_memory {
    /// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/in_memory.rs"));
    /// # }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = in_memory::MemoryChain::default();
    /// # let plan: metering_core::payments::Plan = serde_json::from_str(
    /// #     r#"{"id": "starter", "chain_id": 8453, "token_symbol": "USDC", "payment_kind": "erc20", "credits": 10,
    /// #         "token_amount": "5", "token_contract": "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0",
    /// #         "token_decimals": 6, "label": "Starter"}"#,
    /// # )?;
    /// # let payer = in_memory::Wallet::of(7).address();
    /// let hash = chain.pay(payer, chain.listed().recipient, "5000000".parse()?);
    /// let status = chain.transaction(&hash).await?;
    /// let TransactionStatus::Mined(evidence) = status else { return Err("it is not mined yet".into()) };
    /// let tx = TxRef { chain_id: plan.chain_id, hash };
    /// assert_eq!(plan.judge(&chain.listed(), tx, &evidence)?.payer, payer);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The first problem found. Missing confirmations come last.
    pub fn judge(&self, chain: &Chain, tx: TxRef, evidence: &Evidence) -> Result<Payment, PaymentFault> {
        let payment = self.target(chain).payment(tx, evidence)?;
        let expected = self.price().unwrap_or(TokenUnits::MAX);
        if payment.amount < expected {
            return Err(PaymentFault::TooLittle { expected, found: payment.amount });
        }
        if !evidence.depth.is_enough() {
            return Err(PaymentFault::Unconfirmed(evidence.depth));
        }
        Ok(payment)
    }

    /// Checks the plan's fields, so only plans that can be sold are stored.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn validate(&self) -> Result<(), PlanError> {
        let name_char = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
        let native = self.payment_kind == PaymentKind::NativeValue;
        let rules = [
            (
                (1..=64).contains(&self.id.len()) && self.id.bytes().all(name_char),
                "id",
                "must be 1 to 64 letters, digits, dots, hyphens or underscores",
            ),
            (self.chain_id > 0 && i64::try_from(self.chain_id).is_ok(), "chain_id", "must be a chain's EIP-155 id"),
            (!self.token_symbol.trim().is_empty(), "token_symbol", "must not be blank; name the token, such as USDC"),
            ((1..=32).contains(&self.token_symbol.len()), "token_symbol", "must have 1 to 32 characters"),
            (self.credits.is_positive(), "credits", "must be above zero"),
            (!self.bonus_credits.is_negative(), "bonus_credits", "must not be negative"),
            (self.credits.has_eight_decimals(), "credits", "must have at most eight decimal places"),
            (self.bonus_credits.has_eight_decimals(), "bonus_credits", "must have at most eight decimal places"),
            (self.credits.checked_add(self.bonus_credits).is_some(), "bonus_credits", "is too large"),
            // A quote's tag is at least one unit and under a hundredth of a token.
            ((3..=36).contains(&self.token_decimals), "token_decimals", "must be 3 to 36"),
            (
                self.token_amount.decimal_places() <= u32::from(self.token_decimals),
                "token_amount",
                "has more decimal places than the token",
            ),
            (self.price().is_some_and(|price| price.get() < u128::MAX / 2), "token_amount", "is too large"),
            (
                native == (self.token_contract == Address::ZERO),
                "token_contract",
                "must be the zero address for native_value, and only then",
            ),
            ((1..=128).contains(&self.label.len()), "label", "must have 1 to 128 characters"),
            (self.description.len() <= 1024, "description", "must have at most 1024 characters"),
            (self.discount_percent.is_none_or(|percent| percent < 100), "discount_percent", "must be below 100"),
            (self.recipient != Some(Address::ZERO), "recipient", "must not be the zero address"),
        ];
        match rules.into_iter().find(|(holds, ..)| !holds) {
            None => Ok(()),
            Some((_, field, problem)) => Err(PlanError { plan: self.key(), field, problem }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        serde_json::from_str(
            r#"{"id":"starter","chain_id":1,"token_symbol":"USDC","payment_kind":"erc20","credits":10,
                "bonus_credits":0.5,"token_amount":"5.00","token_decimals":6,"label":"Starter",
                "token_contract":"0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_plan_is_read_with_its_defaults() {
        let plan = plan();
        assert_eq!(plan.validate(), Ok(()));
        assert!(plan.active && plan.recipient.is_none() && plan.sort_order == 0);
        assert_eq!(plan.token_amount.to_string(), "5");
        assert_eq!(plan.bonus_credits.to_string(), "0.5");
    }

    #[test]
    fn plans_that_could_not_be_sold_are_refused() {
        // change, the field that the error names
        type Fault = fn(&mut Plan);
        let table: [(Fault, &str); 16] = [
            (|p| p.id = String::new(), "id"),
            (|p| p.id = "a b".into(), "id"),
            (|p| p.chain_id = 0, "chain_id"),
            (|p| p.token_symbol = " ".into(), "token_symbol"),
            (|p| p.token_symbol = "x".repeat(33), "token_symbol"),
            (|p| p.credits = Credits::ZERO, "credits"),
            (|p| p.bonus_credits = Credits::MAX, "bonus_credits"),
            // The JSON form, in which plans are stored, holds only ten decimal places.
            (|p| p.credits = Credits::from_atoms(7_200_000_009), "credits"),
            (|p| p.bonus_credits = Credits::from_atoms(9), "bonus_credits"),
            (|p| p.token_amount = TokenAmount::parse("0.0000001").unwrap(), "token_amount"),
            (|p| p.token_decimals = 2, "token_decimals"),
            (|p| p.token_decimals = 37, "token_decimals"),
            (|p| (p.token_decimals, p.token_amount) = (36, TokenAmount::parse("1000").unwrap()), "token_amount"),
            (|p| p.token_contract = Address::ZERO, "token_contract"),
            (|p| p.payment_kind = PaymentKind::NativeValue, "token_contract"),
            (|p| p.discount_percent = Some(100), "discount_percent"),
        ];
        for (fault, field) in table {
            let mut plan = plan();
            fault(&mut plan);
            assert_eq!(plan.validate().unwrap_err().field, field);
        }
    }

    #[test]
    fn a_plan_is_named_by_its_id_and_chain() {
        assert_eq!(PlanKey { id: "starter".to_owned(), chain_id: 8453 }.to_string(), "starter on chain 8453");
    }

    #[test]
    fn prices_are_positive_exact_decimals() {
        for bad in ["0", "-1", "1e99", "five", ""] {
            assert!(TokenAmount::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_of_a_plan_are_inclusive() {
        let limited = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.validate().map_err(|error| error.field)
        };
        assert_eq!(limited(&|plan| plan.discount_percent = Some(99)), Ok(()));
        assert_eq!(limited(&|plan| plan.discount_percent = Some(100)), Err("discount_percent"));
    }

    #[test]
    fn amounts_say_how_many_decimals_they_need_and_kinds_their_names() {
        assert_eq!(TokenAmount::parse("5.25").unwrap().decimal_places(), 2);
        assert_eq!([PaymentKind::Erc20, PaymentKind::NativeValue].map(PaymentKind::as_str), ["erc20", "native_value"]);
    }
}
