//! The status of a payment that arrived: which account has it, or who may have sent it.

use std::fmt;

use metering_core::access::AccountId;
use metering_core::payments::{Arrival, Payment, PaymentFault, PaymentRecord, PaymentUse, Quote};
use metering_core::store::{PaymentStore, StoreError};

/// The status of an arrival. Its `Display` form is a note for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentStatus {
    /// An account has it.
    Used(PaymentRecord),
    /// It is not clear what it pays.
    Unclear(PaymentFault),
    /// No account has it.
    Unused(Hints),
}

/// The possible sender of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints {
    /// The open quote that it pays.
    pub quote: Option<Quote>,
    /// The account whose signup its wallet paid for.
    pub owner: Option<AccountId>,
    /// The accounts that its wallet is linked to, except `owner`.
    pub linked: Vec<AccountId>,
}

impl PaymentStatus {
    /// The status of an arrival in the store.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn of(store: &dyn PaymentStore, arrival: &Arrival) -> Result<Self, StoreError> {
        // Check the record first: it takes precedence over the transaction.
        if let Some(record) = store.payment(&arrival.tx).await? {
            return Ok(Self::Used(record));
        }
        match &arrival.payment {
            Ok(payment) => Hints::of(store, payment).await.map(Self::Unused),
            Err(fault) => Ok(Self::Unclear(fault.clone())),
        }
    }

    /// Whether an account has it.
    #[must_use]
    pub const fn is_used(&self) -> bool {
        matches!(self, Self::Used(_))
    }

    /// One word for programs: `used`, `unclear`, `quoted`, `known_payer`, `linked_wallet` or `unknown_payer`.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Used(_) => "used",
            Self::Unclear(_) => "unclear",
            Self::Unused(Hints { quote: Some(_), .. }) => "quoted",
            Self::Unused(Hints { owner: Some(_), .. }) => "known_payer",
            Self::Unused(Hints { linked, .. }) if !linked.is_empty() => "linked_wallet",
            Self::Unused(_) => "unknown_payer",
        }
    }

    /// Whether a reorganisation can still reverse its credits, or did; `None` unless an account has it.
    #[must_use]
    pub fn state(&self) -> Option<&'static str> {
        match self {
            Self::Used(record) => Some(record.settlement.as_str()),
            Self::Unclear(_) | Self::Unused(_) => None,
        }
    }

    /// The accounts that it concerns: the one that has it, or those that may have sent it.
    #[must_use]
    pub fn accounts(&self) -> Vec<&AccountId> {
        match self {
            Self::Used(record) => vec![&record.account],
            Self::Unclear(_) => Vec::new(),
            Self::Unused(hints) => hints.owner.iter().chain(&hints.linked).collect(),
        }
    }

    /// The open quote that it pays.
    #[must_use]
    pub const fn quote(&self) -> Option<&Quote> {
        match self {
            Self::Unused(Hints { quote, .. }) => quote.as_ref(),
            Self::Used(_) | Self::Unclear(_) => None,
        }
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

/// The use of a payment, with the account and the plan: `top-up of org_..., plan starter`.
#[must_use]
pub fn use_of(record: &PaymentRecord) -> String {
    let used = match record.used_as {
        PaymentUse::PaySignup => "signup of",
        PaymentUse::Topup => "top-up of",
        PaymentUse::Assigned => "assigned to",
        PaymentUse::Authorization => "authorized for",
        PaymentUse::Imported => "imported with",
        PaymentUse::Processor => "taken by a processor for",
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
