//! Payments that arrived on the chains, for operators.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::payments::{ArrivalLocation, PaymentTarget, Plan, Quote};
use serde::{Deserialize, Serialize};

use crate::payments::{FoundPayment, ReadableChain, Scan, Token, Unread};
use crate::wire::document::document;

/// The payments that arrived on the chains, compared with the store's records.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArrivalsDocument {
    /// The payments of each chain in chain order, followed by those that a reorganisation removed after they were
    /// credited.
    pub payments: Vec<ArrivalDocument>,
    /// Arrivals that could not be read.
    pub unreadable: Vec<UnreadableDocument>,
    /// The blocks that were scanned.
    pub scanned: Vec<ScannedDocument>,
    /// The names of accounts in `org_ids`, by their ids. Absent on the command line.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agent_names: BTreeMap<String, String>,
}

/// A payment that arrived.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ArrivalDocument {
    /// The chain, by the name of its configuration section.
    pub chain: String,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The transaction.
    pub tx_hash: String,
    /// The number of its block.
    pub block_number: u64,
    /// When the payment was mined, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub mined_at: String,
    /// The wallet that paid; null if it is unclear what was paid.
    pub payer_address: Option<String>,
    /// The address that was paid.
    pub recipient: String,
    /// The token's contract, in lower case; the zero address for the native coin.
    pub token_contract: String,
    /// The token's symbol; null when no plan is sold for it any longer.
    pub token_symbol: Option<String>,
    /// The amount in the token's smallest unit, as a string of digits; null if it is unclear what was paid.
    pub amount_atomic: Option<String>,
    /// The amount in tokens, as a string; null if it is unclear, or when the token's decimals are no longer known.
    pub amount_human: Option<String>,
    /// `used`, `unclear`, `quoted`, `known_payer`, `linked_wallet` or `unknown_payer`.
    pub status: String,
    /// If an account has it: `unsettled`, `final` or `reversed`.
    pub state: Option<String>,
    /// The account that has it, or else the accounts of the wallet it came from.
    pub org_ids: Vec<String>,
    /// The open quote that it pays, if any.
    pub quote: Option<QuotedDocument>,
    /// Its status in words.
    pub note: String,
}

document! {
    /// An open quote, without its nonce or the nonce's hash.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    pub struct QuotedDocument from quote: &Quote;

    /// The account's future name; of a top-up quote, the account's name.
    agent_name: String = quote.agent_name.to_string(),
    /// The plan's id.
    plan_id: String = quote.plan_id.clone(),
}

/// An arrival that could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnreadableDocument {
    /// The chain, by the name of its configuration section.
    pub chain: String,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The transaction; null if a whole block could not be searched.
    pub tx_hash: Option<String>,
    /// The number of its block.
    pub block_number: u64,
    /// Why it could not be read.
    pub reason: String,
    /// How many times the watcher tried; null if it did not.
    pub attempts: Option<u32>,
    /// When the watcher found it, as RFC 3339; null if it did not.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub found_at: Option<String>,
    /// When the watcher tries again, as RFC 3339; null once it gave up.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub next_attempt_at: Option<String>,
}

/// The blocks of a chain that were scanned, both ends included.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScannedDocument {
    /// The chain, by the name of its configuration section.
    pub chain: String,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The first block.
    pub from_block: u64,
    /// The last block.
    pub to_block: u64,
    /// The block to continue with; absent when the whole range was scanned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_block: Option<u64>,
}

impl ArrivalsDocument {
    /// Adds the result of scanning a chain. The names of its tokens come from `plans`.
    pub fn add(&mut self, chain: ReadableChain<'_>, scan: &Scan, plans: &[Plan]) {
        self.payments.extend(scan.found.iter().map(|found| ArrivalDocument::new(chain.name, found, plans)));
        self.unreadable.extend(scan.unread.iter().map(|unread| UnreadableDocument::new(chain.name, unread)));
        self.scanned.push(ScannedDocument {
            chain: chain.name.to_owned(),
            chain_id: chain.id(),
            from_block: scan.from_block,
            to_block: scan.to_block,
            next_block: scan.next_block,
        });
    }

    /// Adds what a scan found that continued this one, on the same chain, at its last [`ScannedDocument::next_block`].
    ///
    /// A scan that reaches the end lists payments with reversed credits from any block; those that this scan listed
    /// already are not repeated.
    pub fn continue_with(&mut self, next: Self) {
        let listed: BTreeSet<&str> = self.payments.iter().map(|payment| payment.tx_hash.as_str()).collect();
        let is_new = |payment: &ArrivalDocument| !listed.contains(payment.tx_hash.as_str());
        let new: Vec<_> = next.payments.into_iter().filter(is_new).collect();
        self.payments.extend(new);
        self.unreadable.extend(next.unreadable);
        for scanned in next.scanned {
            match self.scanned.last_mut() {
                Some(last) => (last.to_block, last.next_block) = (scanned.to_block, scanned.next_block),
                None => self.scanned.push(scanned),
            }
        }
    }

    /// Adds the payments of another chain.
    pub fn append(&mut self, other: Self) {
        self.payments.extend(other.payments);
        self.unreadable.extend(other.unreadable);
        self.scanned.extend(other.scanned);
    }
}

impl ArrivalDocument {
    pub(crate) fn new(chain: &str, FoundPayment { arrival, status }: &FoundPayment, plans: &[Plan]) -> Self {
        let PaymentTarget { chain_id, token: token_contract, recipient } = arrival.target;
        let payment = arrival.payment.as_ref().ok();
        let token = Token::of(plans, &arrival.target);
        Self {
            chain: chain.to_owned(),
            chain_id,
            tx_hash: arrival.tx.hash.to_string(),
            block_number: arrival.block.number,
            mined_at: arrival.block.time.to_string(),
            payer_address: payment.map(|payment| payment.payer.to_string()),
            recipient: recipient.to_string(),
            token_contract: token_contract.to_string(),
            token_symbol: token.symbol().map(ToOwned::to_owned),
            amount_atomic: payment.map(|payment| payment.amount.to_string()),
            amount_human: payment.and_then(|payment| token.human(payment.amount)),
            status: status.as_str().to_owned(),
            state: status.state().map(ToOwned::to_owned),
            org_ids: status.accounts().into_iter().map(ToString::to_string).collect(),
            quote: status.quote().map(QuotedDocument::from),
            note: status.to_string(),
        }
    }
}

impl UnreadableDocument {
    /// Why it could not be read and what the watcher does about it, in words.
    #[must_use]
    pub fn note(&self) -> String {
        match (self.attempts, &self.next_attempt_at) {
            (None, _) => self.reason.clone(),
            (Some(attempts), Some(next)) => format!("{}; tried {attempts} times, next at {next}", self.reason),
            (Some(attempts), None) => format!("{}; gave up after {attempts} attempts", self.reason),
        }
    }

    fn new(chain: &str, unread: &Unread) -> Self {
        let ArrivalLocation { chain_id, block_number, hash } = unread.location();
        let record = unread.record();
        Self {
            chain: chain.to_owned(),
            chain_id,
            tx_hash: hash.map(|hash| hash.to_string()),
            block_number,
            reason: unread.reason().to_owned(),
            attempts: record.map(|arrival| arrival.attempts),
            found_at: record.map(|arrival| arrival.found_at.to_string()),
            next_attempt_at: record.and_then(|arrival| arrival.next_attempt_at).map(|at| at.to_string()),
        }
    }
}
