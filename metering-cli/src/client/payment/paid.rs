//! A key that was issued for money: it is in the profile before anything else can go wrong, and never lost.

use std::io::Write;

use metering_core::{ApiKey, TxHash};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use zeroize::Zeroizing;

use crate::client::amount::Amount;
use crate::client::payment::bill::Bill;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::output::json_line;
use crate::table::write_pairs;

/// The answer that brings a key, of a claim and of a rotation.
#[derive(Deserialize)]
pub(crate) struct Issued {
    api_key: Zeroizing<String>,
    pub(crate) org_id: String,
    pub(crate) credit_balance: Amount,
    pub(crate) rate_limits: Box<RawValue>,
}

/// An account whose key the profile has.
#[derive(Deserialize)]
pub(crate) struct Held {
    org_id: String,
    credit_balance: Amount,
    rate_limits: Box<RawValue>,
}

/// What is printed of it: not the key.
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
    /// Stores the key in the profile; where that fails, the key goes to standard output, since it is given only once.
    pub(crate) fn keep(&self, session: &mut Session, out: &mut dyn Write) -> Result<(), Failure> {
        let key =
            ApiKey::parse(&self.api_key).map_err(|_| Failure::Failed("it is not a key as they are here".to_owned()));
        let Err(failure) = key.and_then(|key| session.keep(key, Some(self.org_id.clone()))) else { return Ok(()) };
        writeln!(out, "{}", self.api_key.as_str())?;
        out.flush()?;
        Err(Failure::Failed(format!(
            "the new key could not be stored ({failure}), so it is on standard output, this once: keep it safe, and \
             store it by `metering config set api-key`"
        )))
    }

    /// What to print of it.
    pub(crate) fn account(&self, session: &Session, status: &'static str) -> Account<'_> {
        Account::new(session, status, &self.org_id, &self.credit_balance, &self.rate_limits)
    }
}

impl Held {
    /// Asks the service.
    pub(crate) async fn ask(session: &Session) -> Result<Self, Failure> {
        Ok(session.client()?.get("/credits/balance").await?.json()?)
    }

    /// What to print of it.
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

    /// With what it was paid by.
    pub(crate) fn paid_by(mut self, bill: &'a Bill, tx_hash: TxHash) -> Self {
        self.plan_id = Some(&bill.plan_id);
        self.tx_hash = Some(tx_hash.to_string());
        self.chain_id = Some(bill.chain_id);
        self
    }

    /// Prints it, under a sentence that says what was done.
    pub(crate) fn write(&self, out: &mut dyn Write, json: bool, done: &str) -> Result<(), Failure> {
        if json {
            return json_line(out, self);
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
