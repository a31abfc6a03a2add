//! A bill: how much of a token to pay, to whom, and on which chain. Quotes are checked against the service's own price
//! list.

use std::fmt;

use metering_core::chains::{Address, TokenUnits};
use metering_core::payments::PaymentKind;
use metering_evm::PaymentOrder;
use serde::{Deserialize, Serialize};

use crate::client::payments::payment::market::{Market, Offer};
use crate::client::payments::payment::quote::Quote;
use crate::failure::Failure;

/// The amount due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bill {
    pub(crate) plan_id: String,
    /// The plan's credits, in words.
    pub(crate) sells: String,
    pub(crate) chain_id: u64,
    pub(crate) chain_name: String,
    pub(crate) recipient: Address,
    /// The token's contract; the zero address for the chain's native coin.
    pub(crate) token: Address,
    pub(crate) token_symbol: String,
    pub(crate) token_decimals: u8,
    /// In the token's smallest unit.
    pub(crate) amount: TokenUnits,
    /// How many confirmations the payment needs.
    pub(crate) confirmations: u64,
    /// A public RPC URL of the chain, if the service names one.
    pub(crate) rpc_hint: Option<String>,
}

impl Bill {
    /// The bill for a plan at its list price.
    pub(crate) fn of_plan(market: &Market, offer: &Offer) -> Result<Self, Failure> {
        let invalid = |what: &str| Failure::Failed(format!("plan {} cannot be paid: {what}", offer.id));
        let native = offer.payment_kind == PaymentKind::NativeValue;
        if native != (offer.token_contract == Address::ZERO) {
            return Err(invalid("the service names a token contract for a native coin, or none for a token"));
        }
        if offer.recipient == Address::ZERO {
            return Err(invalid("the service names no recipient"));
        }
        let amount = offer.token_amount.to_units(offer.token_decimals);
        Ok(Self {
            plan_id: offer.id.clone(),
            sells: sells(offer),
            chain_id: offer.chain_id,
            chain_name: shown(&market.chain_name(offer.chain_id)),
            recipient: offer.recipient,
            token: offer.token_contract,
            token_symbol: shown(&offer.token_symbol),
            token_decimals: offer.token_decimals,
            amount: amount.ok_or_else(|| invalid("its price has more decimals than its token, or is out of range"))?,
            confirmations: market.confirmations(offer.chain_id),
            rpc_hint: Some(offer.rpc_url.clone()).filter(|url| !url.is_empty()),
        })
    }

    /// This bill with the quote's amount, if everything else in the quote matches the plan.
    pub(crate) fn quoted(self, quote: &Quote) -> Result<Self, Failure> {
        let refuse = |what: &str, listed: &dyn fmt::Display, quoted: &dyn fmt::Display| {
            Failure::Failed(format!(
                "the quote does not match the plan, so nothing was paid: {what} is {quoted}, but the plan has \
                 {listed}; tell the service's operator"
            ))
        };
        if quote.chain_id != self.chain_id {
            return Err(refuse("its chain", &self.chain_id, &quote.chain_id));
        }
        if quote.recipient != self.recipient {
            return Err(refuse("its recipient", &self.recipient.to_checksummed(), &quote.recipient.to_checksummed()));
        }
        let native = quote.payment_kind == PaymentKind::NativeValue;
        if quote.token_contract != self.token || native != (self.token == Address::ZERO) {
            return Err(refuse("its token", &self.token.to_checksummed(), &quote.token_contract.to_checksummed()));
        }
        if quote.token_decimals != self.token_decimals {
            return Err(refuse("its token's decimals", &self.token_decimals, &quote.token_decimals));
        }
        if !self.token_symbol.eq_ignore_ascii_case(&quote.token_symbol) {
            return Err(refuse("its token", &self.token_symbol, &quote.token_symbol));
        }
        if !(self.amount..=self.max_amount()).contains(&quote.amount_atomic) {
            let quoted = quote.amount_atomic.to_human(self.token_decimals);
            return Err(refuse("its amount", &format!("a price of {}", self.human()), &quoted));
        }
        let rpc_hint = quote.rpc_hint.clone().filter(|url| !url.is_empty()).or(self.rpc_hint);
        Ok(Self { amount: quote.amount_atomic, rpc_hint, ..self })
    }

    /// The price plus a hundredth of a token, which is more than any tag.
    fn max_amount(&self) -> TokenUnits {
        let hundredth = 10_u128.checked_pow(u32::from(self.token_decimals).saturating_sub(2)).unwrap_or(0);
        TokenUnits::new(self.amount.get().saturating_add(hundredth))
    }

    /// The amount in the token's display unit.
    pub(crate) fn human(&self) -> String {
        self.amount.to_human(self.token_decimals)
    }

    /// The payment order for a wallet.
    pub(crate) fn order(&self) -> PaymentOrder {
        PaymentOrder {
            chain_id: self.chain_id,
            recipient: self.recipient,
            token: Some(self.token).filter(|token| *token != Address::ZERO),
            amount: self.amount,
        }
    }
}

/// Text from the service, without control characters that could overwrite the payment details on a terminal.
fn shown(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// `10 credits and a bonus of 0.5`.
fn sells(offer: &Offer) -> String {
    if offer.bonus_credits.is_used_up() {
        return format!("{} credits", offer.credits);
    }
    format!("{} credits and a bonus of {}", offer.credits, offer.bonus_credits)
}

/// `5.003817 USDC to 0x5aAe... on chain 8453`.
impl fmt::Display for Bill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let recipient = self.recipient.to_checksummed();
        write!(f, "{} {} to {recipient} on chain {}", self.human(), self.token_symbol, self.chain_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPIENT: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";
    const TOKEN: &str = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359";

    fn bill() -> Bill {
        Bill {
            plan_id: "starter".to_owned(),
            sells: "10 credits".to_owned(),
            chain_id: 8453,
            chain_name: "base".to_owned(),
            recipient: RECIPIENT.parse().unwrap(),
            token: TOKEN.parse().unwrap(),
            token_symbol: "USDC".to_owned(),
            token_decimals: 6,
            amount: TokenUnits::new(5_000_000),
            confirmations: 12,
            rpc_hint: None,
        }
    }

    fn quote(change: &[(&str, serde_json::Value)]) -> Quote {
        let mut document = serde_json::json!({
            "signup_nonce": "sqn_x", "recipient": RECIPIENT, "amount_atomic": "5003817", "amount_human": "9",
            "token_contract": TOKEN, "token_symbol": "usdc", "token_decimals": 6, "chain_id": 8453,
            "payment_kind": "erc20", "rpc_hint": "https://rpc.example", "expires_at": "2026-11-21T07:04:30.417Z",
            "terms_url": "https://api.example/terms", "terms_version": "1", "notice": "",
        });
        for (name, value) in change {
            document[*name] = value.clone();
        }
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn quote_of_the_plan_plus_a_tag_is_accepted() {
        let quoted = bill().quoted(&quote(&[])).unwrap();
        assert_eq!((quoted.human().as_str(), quoted.rpc_hint.as_deref()), ("5.003817", Some("https://rpc.example")));
        assert_eq!(quoted.order().token, Some(TOKEN.parse().unwrap()));
        assert!(bill().quoted(&quote(&[("amount_atomic", "5010000".into())])).is_ok(), "a hundredth of a token");
    }

    #[test]
    fn quote_that_differs_from_the_plan_is_rejected() {
        let zero = "0x0000000000000000000000000000000000000000";
        let table: [(&str, serde_json::Value); 10] = [
            ("amount_atomic", "5010001".into()),
            ("amount_atomic", "4999999".into()),
            ("amount_atomic", "340282366920938463463374607431768211455".into()),
            ("recipient", TOKEN.into()),
            ("token_contract", RECIPIENT.into()),
            ("token_contract", zero.into()),
            ("payment_kind", "native_value".into()),
            ("token_decimals", 18.into()),
            ("token_symbol", "USDT".into()),
            ("chain_id", 1.into()),
        ];
        for (name, value) in table {
            let refused = bill().quoted(&quote(&[(name, value.clone())])).unwrap_err();
            assert!(refused.to_string().contains("nothing was paid"), "{name} {value}: {refused}");
        }
    }

    #[test]
    fn the_native_coin_has_no_contract_in_an_order() {
        assert_eq!(Bill { token: Address::ZERO, ..bill() }.order().token, None);
    }
}
