//! A key that was paid for. It is stored in the profile before anything else can go wrong, so that it is never lost.

use std::io::Write;

use metering_core::ApiKey;
use metering_core::chains::TxHash;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::client::money::amount::Amount;
use crate::client::payments::payment::bill::Bill;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::output::{notice, write_json};
use crate::table::{printable, write_pairs};

/// The response to a claim or a rotation, with the key.
#[derive(Deserialize)]
pub(crate) struct Issued {
    api_key: Zeroizing<String>,
    pub(crate) org_id: String,
    pub(crate) credit_balance: Amount,
    pub(crate) rate_limits: Box<RawValue>,
    /// The other keys that still work, after a recovery.
    #[serde(default)]
    remaining_keys: Vec<RemainingKey>,
}

/// Another key of the account.
#[derive(Deserialize)]
struct RemainingKey {
    id: String,
    name: String,
}

/// An account whose key the profile has.
#[derive(Deserialize)]
pub(crate) struct CurrentAccount {
    org_id: String,
    credit_balance: Amount,
    rate_limits: Box<RawValue>,
}

/// The account as it is printed, without the key.
#[derive(Debug, Serialize)]
pub(crate) struct Account<'a> {
    pub(crate) status: &'static str,
    pub(crate) profile: String,
    pub(crate) org_id: &'a str,
    pub(crate) credit_balance: &'a Amount,
    pub(crate) rate_limits: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tx_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chain_id: Option<u64>,
}

impl Issued {
    /// Stores the key in the profile. If that fails, prints it on standard output, because it is returned only once.
    pub(crate) fn keep(&self, session: &mut Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key = ApiKey::parse(&self.api_key).map_err(|_| Failure::Failed("it is not a valid key".to_owned()));
        let Err(failure) = key.and_then(|key| session.keep(key, Some(self.org_id.clone()))) else { return Ok(()) };
        writeln!(out, "{}", self.api_key.as_str())?;
        out.flush()?;
        Err(Failure::Failed(format!(
            "the new key could not be stored ({failure}), so it is printed on standard output, only this once: save \
            it, then store it with `metering config set api-key`"
        )))
    }

    /// Lists the other keys that still work, so that the owner can delete those of a thief.
    pub(crate) fn note_remaining_keys(&self) {
        if self.remaining_keys.is_empty() {
            return;
        }
        let key = |key: &RemainingKey| format!("\n  {}  {}", printable(&key.id), printable(&key.name));
        let keys: String = self.remaining_keys.iter().map(key).collect();
        notice(&format!("These keys still work; delete those that you do not know with `metering keys delete`:{keys}"));
    }

    /// The account to print.
    pub(crate) fn account(&self, session: &Session, status: &'static str) -> Account<'_> {
        Account::new(session, status, &self.org_id, &self.credit_balance, &self.rate_limits)
    }
}

impl CurrentAccount {
    /// Requests the account from the service.
    pub(crate) async fn fetch(session: &Session) -> Result<Self, Failure> {
        Ok(session.client()?.get("/credits/balance").await?.json()?)
    }

    /// The account to print.
    pub(crate) fn account(&self, session: &Session, status: &'static str) -> Account<'_> {
        Account::new(session, status, &self.org_id, &self.credit_balance, &self.rate_limits)
    }
}

impl<'a> Account<'a> {
    fn new(
        session: &Session,
        status: &'static str,
        org_id: &'a str,
        credit_balance: &'a Amount,
        rate_limits: &'a RawValue,
    ) -> Self {
        let profile = session.profile.name().to_string();
        Self { status, profile, org_id, credit_balance, rate_limits, plan_id: None, tx_hash: None, chain_id: None }
    }

    /// Adds the payment.
    pub(crate) fn paid_by(mut self, bill: &'a Bill, tx_hash: TxHash) -> Self {
        self.plan_id = Some(&bill.plan_id);
        self.tx_hash = Some(tx_hash.to_string());
        self.chain_id = Some(bill.chain_id);
        self
    }

    /// Prints the account below a sentence about the action.
    pub(crate) fn write(&self, out: &mut dyn Write, json: bool, done: &str) -> Result<(), Failure> {
        if json {
            return write_json(out, self);
        }
        writeln!(out, "{done}")?;
        write_pairs(
            out,
            &[
                ("Account", &self.org_id),
                ("Balance", &self.credit_balance),
                ("Key", &format!("in profile {}", self.profile)),
            ],
        )
    }
}
