//! What is known about a payment that arrived: who has it, or who may have sent it.

use std::fmt;

use metering_core::access::AgentName;
use metering_core::payments::{Payment, PaymentFault, PaymentRecord, PaymentUse, Quote};
use metering_core::service::Arrival;
use metering_core::{AccountId, PaymentStore, StoreError};
use serde::Serialize;

/// What is known about an arrival.
#[derive(Debug)]
pub(super) enum PaymentStatus {
    /// An account has it.
    Used(PaymentRecord),
    /// It is not clear what it pays.
    Unclear(PaymentFault),
    /// No account has it.
    Unused(Hints),
}

/// Who may have sent a payment.
#[derive(Debug)]
pub(super) struct Hints {
    /// The open quote that it pays.
    quote: Option<Quote>,
    /// The account whose signup its wallet paid for.
    owner: Option<AccountId>,
    /// The accounts that its wallet is linked to.
    linked: Vec<AccountId>,
}

/// A quote as the commands print it, without its nonce or the nonce's hash.
#[derive(Debug, Serialize)]
pub(super) struct QuoteDocument<'a> {
    agent_name: &'a AgentName,
    plan_id: &'a str,
}

impl PaymentStatus {
    pub(super) async fn of(store: &dyn PaymentStore, arrival: &Arrival) -> Result<Self, StoreError> {
        // Check the record first: it decides, whatever the transaction looks like.
        if let Some(record) = store.payment(&arrival.tx).await? {
            return Ok(Self::Used(record));
        }
        match &arrival.payment {
            Ok(payment) => Hints::of(store, payment).await.map(Self::Unused),
            Err(fault) => Ok(Self::Unclear(fault.clone())),
        }
    }

    pub(super) fn is_used(&self) -> bool {
        matches!(self, Self::Used(_))
    }

    /// One word for programs.
    pub(super) fn as_str(&self) -> &'static str {
        match self {
            Self::Used(_) => "used",
            Self::Unclear(_) => "unclear",
            Self::Unused(Hints { quote: Some(_), .. }) => "quoted",
            Self::Unused(Hints { owner: Some(_), .. }) => "known_payer",
            Self::Unused(Hints { linked, .. }) if !linked.is_empty() => "linked_wallet",
            Self::Unused(_) => "unknown_payer",
        }
    }

    /// Whether a reorganisation can still reverse its credits, or did.
    pub(super) fn state(&self) -> Option<&'static str> {
        match self {
            Self::Used(record) => Some(record.settlement.as_str()),
            Self::Unclear(_) | Self::Unused(_) => None,
        }
    }

    /// The accounts that it concerns: the one that has it, or those that may have sent it.
    pub(super) fn accounts(&self) -> Vec<&AccountId> {
        match self {
            Self::Used(record) => vec![&record.account],
            Self::Unclear(_) => Vec::new(),
            Self::Unused(hints) => hints.owner.iter().chain(&hints.linked).collect(),
        }
    }

    /// The open quote that it pays.
    pub(super) fn quote(&self) -> Option<QuoteDocument<'_>> {
        let Self::Unused(Hints { quote: Some(quote), .. }) = self else { return None };
        Some(QuoteDocument { agent_name: &quote.agent_name, plan_id: &quote.plan_id })
    }
}

impl Hints {
    async fn of(store: &dyn PaymentStore, payment: &Payment) -> Result<Self, StoreError> {
        let owner = store.account_by_payer(&payment.payer).await?.map(|account| account.id);
        let mut linked = store.linked_accounts(&payment.payer).await?;
        linked.retain(|account| Some(account) != owner.as_ref());
        Ok(Self { quote: store.quote_paid_by(payment).await?, owner, linked })
    }
}

/// What a payment was used for, with the plan and the account.
pub(super) fn use_of(record: &PaymentRecord) -> String {
    let used = match record.used_as {
        PaymentUse::PaySignup => "signup of",
        PaymentUse::Topup => "top-up of",
        PaymentUse::Assigned => "assigned to",
    };
    let plan = record.plan_id.as_ref().map(|plan| format!(", plan {plan}")).unwrap_or_default();
    format!("{used} {}{plan}", record.account)
}

impl fmt::Display for PaymentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Used(record) => f.write_str(&use_of(record)),
            Self::Unclear(fault) => write!(f, "{fault}"),
            Self::Unused(hints) => write!(f, "{hints}"),
        }
    }
}

impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = self.quote.as_ref().map(|quote| match &quote.top_up {
            Some(account) => format!("top-up quote of {account} waits for it"),
            None => format!("quote of {} is not claimed yet", quote.agent_name),
        });
        let owner = self.owner.as_ref().map(|account| format!("its wallet paid for the signup of {account}"));
        let linked: Vec<&str> = self.linked.iter().map(AccountId::as_str).collect();
        let linked = (!linked.is_empty()).then(|| format!("its wallet is linked to {}", linked.join(", ")));
        let known: Vec<String> = [quote, owner, linked].into_iter().flatten().collect();
        if known.is_empty() { f.write_str("matches no quote or account") } else { f.write_str(&known.join("; ")) }
    }
}
