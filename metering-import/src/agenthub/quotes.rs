//! Open payment quotes: their payments may be on the way while the service moves.

use std::time::Duration;

use metering_core::chains::{Address, TokenUnits};
use metering_core::clock::Timestamp;
use metering_core::money::Credits;
use metering_core::payments::{NonceHash, PaymentTarget, Quote, QuoteState, nonce_hash};

use super::Cell;
use super::owner::{email_of, name_of};
use crate::finding::{ImportFinding, ImportFindingKind};
use crate::key_record;
use crate::time::parse_time;

/// How long after its expiry a quote is imported: the move may take a while, and payments that were mined before the
/// expiry are honoured.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// A row of `signup_payment_quotes` that is not consumed, with the credits of its plan.
#[derive(Debug, Clone, Default)]
pub struct AgentHubQuote {
    /// `id`.
    pub id: String,
    /// `signup_nonce_raw`.
    pub nonce: Option<zeroize::Zeroizing<String>>,
    /// `signup_nonce_hash`: its SHA-256, in hexadecimal digits.
    pub nonce_hash: String,
    /// `agent_name`.
    pub agent_name: String,
    /// `email`.
    pub email: Option<String>,
    /// `plan_id`.
    pub plan_id: String,
    /// `credits` of that plan in `credit_plans`.
    pub credits: Cell,
    /// `chain_id`.
    pub chain_id: Cell,
    /// `token_contract`.
    pub token: String,
    /// Whether `payment_kind` is `native_value`.
    pub is_native: bool,
    /// `amount_atomic`.
    pub amount: String,
    /// `payer_address`.
    pub payer: String,
    /// `recipient`.
    pub recipient: String,
    /// `created_at`.
    pub created_at: String,
    /// `expires_at`.
    pub expires_at: String,
}

/// The quote to open for a row; `None` for one that expired more than a day ago: its payment is no longer expected.
///
/// # Errors
/// When the row does not identify a payment that can be checked.
pub fn plan_quote(row: &AgentHubQuote, now: Timestamp) -> Result<Option<Quote>, ImportFinding> {
    let refused = |column: &str| {
        let detail = format!("{column} cannot be read; it was not imported, and its payment needs an operator");
        ImportFinding::new(format!("signup_payment_quotes {}", row.id), ImportFindingKind::QuoteRefused, detail)
    };
    let expires_at = parse_time(&row.expires_at).ok_or_else(|| refused("expires_at"))?;
    if expires_at.saturating_add(KEPT) <= now {
        return Ok(None);
    }
    let address = |column: &str, text: &str| {
        let address = text.trim().parse::<Address>().ok().filter(|address| *address != Address::ZERO);
        address.ok_or_else(|| refused(column))
    };
    let stored = || key_record::hash(&row.nonce_hash).map(|hash| NonceHash::from_bytes(*hash.as_bytes()));
    let nonce = row.nonce.as_ref().and_then(|nonce| nonce_hash(nonce)).or_else(stored);
    let amount = row.amount.trim().parse::<TokenUnits>().ok().filter(|amount| amount.get() > 0);
    let chain_id = row.chain_id.whole().and_then(|id| u64::try_from(id).ok()).filter(|id| *id > 0);
    let token = if row.is_native { Address::ZERO } else { address("token_contract", &row.token)? };
    let credits = row.credits.real().map(|real| real.credits).ok().filter(|credits| credits.is_positive());
    Ok(Some(Quote {
        nonce: nonce.ok_or_else(|| refused("signup_nonce_hash"))?,
        agent_name: name_of(&row.agent_name).ok_or_else(|| refused("agent_name"))?,
        email: row.email.as_deref().and_then(email_of),
        payer: address("payer_address", &row.payer)?,
        top_up: None,
        target: PaymentTarget {
            chain_id: chain_id.ok_or_else(|| refused("chain_id"))?,
            token,
            recipient: address("recipient", &row.recipient)?,
        },
        amount: amount.ok_or_else(|| refused("amount_atomic"))?,
        plan_id: row.plan_id.clone(),
        credits: credits.ok_or_else(|| refused("credits of its plan"))?,
        bonus_credits: Credits::ZERO,
        created_at: parse_time(&row.created_at).ok_or_else(|| refused("created_at"))?,
        expires_at,
        state: QuoteState::Open,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_unix_millis(1_795_262_400_000);

    fn row() -> AgentHubQuote {
        AgentHubQuote {
            id: "q1".to_owned(),
            nonce_hash: "ab".repeat(32),
            agent_name: "buyer".to_owned(),
            email: Some("pay-rail-anon+00@agent.local".to_owned()),
            plan_id: "starter".to_owned(),
            credits: Cell::Integer(10),
            chain_id: Cell::Integer(8453),
            token: format!("0x{}", "c0".repeat(20)),
            amount: "5000000".to_owned(),
            payer: format!("0x{}", "07".repeat(20)),
            recipient: format!("0x{}", "09".repeat(20)),
            created_at: "2026-11-21T11:50:00.000Z".to_owned(),
            expires_at: "2026-11-21T12:20:00.000Z".to_owned(),
            ..AgentHubQuote::default()
        }
    }

    #[test]
    fn an_open_quote_keeps_its_amount_its_nonce_and_its_time() {
        let quote = plan_quote(&row(), NOW).unwrap().unwrap();
        assert_eq!(quote.nonce, NonceHash::from_bytes([0xab; 32]));
        assert_eq!((quote.agent_name.as_str(), quote.email), ("buyer", None));
        assert_eq!((quote.amount.get(), quote.credits.to_string()), (5_000_000, "10".to_owned()));
        assert_eq!(quote.created_at.to_string(), "2026-11-21T11:50:00.000Z");
        let raw = "sqn_another-services-nonce";
        let with_raw = AgentHubQuote { nonce: Some(raw.to_owned().into()), ..row() };
        assert_eq!(plan_quote(&with_raw, NOW).unwrap().unwrap().nonce, nonce_hash(raw).unwrap());
        let native = AgentHubQuote { is_native: true, token: "0x0".to_owned(), ..row() };
        assert_eq!(plan_quote(&native, NOW).unwrap().unwrap().target.token, Address::ZERO);
    }

    #[test]
    fn old_quotes_are_left_and_broken_ones_are_listed() {
        let old = AgentHubQuote { expires_at: "2026-11-20T11:59:59Z".to_owned(), amount: String::new(), ..row() };
        assert_eq!(plan_quote(&old, NOW), Ok(None));
        let broken = [
            AgentHubQuote { amount: "0".to_owned(), ..row() },
            AgentHubQuote { credits: Cell::Null, ..row() },
            AgentHubQuote { payer: String::new(), ..row() },
            AgentHubQuote { nonce_hash: "x".to_owned(), ..row() },
            AgentHubQuote { chain_id: Cell::Integer(0), ..row() },
            AgentHubQuote { created_at: "soon".to_owned(), ..row() },
        ];
        for row in broken {
            assert_eq!(plan_quote(&row, NOW).unwrap_err().kind, ImportFindingKind::QuoteRefused, "{row:?}");
        }
    }
}
