//! A pending payment, as the journal records it.

use std::fmt;

use metering_core::access::AgentName;
use metering_core::chains::{Address, TxHash};
use metering_evm::SignedPayment;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::client::payments::payment::bill::Bill;
use crate::client::payments::payment::quote::{Expiry, SignupNonce};
use crate::failure::Failure;

/// A pending payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// The service that is paid.
    pub(crate) service: String,
    pub(crate) purpose: Purpose,
    pub(crate) bill: Bill,
    /// The wallet that pays.
    pub(crate) payer: Address,
    pub(crate) payment: Payment,
}

/// What is paid for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Purpose {
    /// A new account.
    Signup(Signup),
    /// Credits for an account.
    Topup {
        /// The account's id.
        org_id: String,
    },
}

/// An account to be created, and its quote.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Signup {
    #[serde(serialize_with = "as_text", deserialize_with = "from_text")]
    pub(crate) agent_name: AgentName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
    pub(crate) signup_nonce: SignupNonce,
    pub(crate) expires_at: Expiry,
    pub(crate) terms_url: String,
    /// Whether the profile's key may be replaced.
    pub(crate) replaces_key: bool,
    /// Whether a wallet other than the client's pays, so that the client does not know the transaction.
    pub(crate) paid_elsewhere: bool,
}

/// The state of the payment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Payment {
    /// Nothing is signed yet.
    Unpaid,
    /// It is signed, and may have been sent.
    Signed(SignedPayment),
    /// It was sent.
    Sent(SignedPayment),
    /// Another wallet sent it.
    Elsewhere(TxHash),
}

impl Payment {
    /// What the client signed.
    pub(crate) const fn signed(&self) -> Option<&SignedPayment> {
        match self {
            Self::Signed(signed) | Self::Sent(signed) => Some(signed),
            Self::Unpaid | Self::Elsewhere(_) => None,
        }
    }

    /// The transaction.
    pub(crate) fn hash(&self) -> Option<TxHash> {
        match self {
            Self::Unpaid => None,
            Self::Signed(signed) | Self::Sent(signed) => Some(signed.hash),
            Self::Elsewhere(hash) => Some(*hash),
        }
    }
}

impl Entry {
    /// The command that started it.
    pub(crate) const fn command(&self) -> &'static str {
        match self.purpose {
            Purpose::Signup(_) => "metering signup-pay",
            Purpose::Topup { .. } => "metering topup",
        }
    }

    /// The quote and the account to be created.
    pub(crate) const fn signup(&self) -> Option<&Signup> {
        match &self.purpose {
            Purpose::Signup(signup) => Some(signup),
            Purpose::Topup { .. } => None,
        }
    }

    /// Whether it is certain that nothing was paid: nothing is signed, and no other wallet was asked to pay.
    pub(crate) fn is_certainly_unpaid(&self) -> bool {
        matches!(self.payment, Payment::Unpaid) && !self.signup().is_some_and(|signup| signup.paid_elsewhere)
    }

    /// Refuses to continue this entry with arguments other than those it was started with.
    pub(crate) fn check_matches(&self, plan: Option<&str>, chain: Option<&str>) -> Result<(), Failure> {
        // A chain's name is looked up in the price list, which may have changed since; its id does not change.
        let other_chain = chain.and_then(|chain| chain.parse::<u64>().ok()).is_some_and(|id| id != self.bill.chain_id);
        if plan.is_some_and(|plan| plan != self.bill.plan_id) || other_chain {
            return Err(self.conflict());
        }
        Ok(())
    }

    /// The failure if another payment is requested.
    pub(crate) fn conflict(&self) -> Failure {
        Failure::Conflict(format!(
            "another payment is pending: {self}; continue it with `{0}`, or drop it with `{0} --abandon`",
            self.command()
        ))
    }
}

/// `plan starter (5.003817 USDC to 0x5aAe... on chain 8453), signed, transaction 0x...`.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {} ({})", self.bill.plan_id, self.bill)?;
        match &self.payment {
            Payment::Unpaid if self.is_certainly_unpaid() => write!(f, ", not paid yet"),
            Payment::Unpaid => write!(f, ", to be paid by another wallet"),
            Payment::Signed(signed) => write!(f, ", signed and perhaps sent as transaction {}", signed.hash),
            Payment::Sent(signed) => write!(f, ", sent as transaction {}", signed.hash),
            Payment::Elsewhere(hash) => write!(f, ", paid by another wallet in transaction {hash}"),
        }
    }
}

fn as_text<S: Serializer>(name: &AgentName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(name)
}

fn from_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentName, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}
