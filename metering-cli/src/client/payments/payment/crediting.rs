//! Credits a payment to an existing account, with a proof from the payer if the service asks for one.

use std::fmt::Display;
use std::io::Write;

use metering_client::{Client, Refusal};
use metering_core::chains::TxHash;
use metering_evm::Wallet;
use serde::{Deserialize, Serialize};

use crate::client::money::amount::Amount;
use crate::client::payments::payment::arguments::PaymentArgs;
use crate::client::payments::payment::proof::{self, Request};
use crate::client::payments::payment::registration::{RegistrationResult, Watched, register};
use crate::client::payments::payment::retry::PaymentRetries;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::output::{notice, write_json};
use crate::table::write_pairs;

/// An account to which payments are credited.
pub(crate) struct Crediting<'a> {
    session: &'a Session,
    client: Client,
    args: &'a PaymentArgs,
    org_id: String,
    /// The payer's signature, if it was made elsewhere.
    signature: Option<String>,
    wallet: Option<Wallet>,
    json: bool,
}

/// A payment to be credited.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    pub(crate) plan_id: &'a str,
    pub(crate) chain_id: u64,
    pub(crate) hash: TxHash,
    /// Set if this client sent the payment.
    pub(crate) watched: Option<Watched<'a>>,
}

#[derive(Serialize)]
struct Body<'a> {
    plan_id: &'a str,
    chain_id: u64,
    tx_hash: TxHash,
    #[serde(skip_serializing_if = "Option::is_none")]
    signature: Option<&'a str>,
}

/// The response to `POST /credits/topup`.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Credited {
    credit_balance: Amount,
    amount_added: Amount,
    total_credits_purchased: Amount,
    plan_id: String,
    tx_hash: String,
    chain_id: u64,
    already_credited: bool,
}

/// The output if the wallet's key is not on this machine.
#[derive(Serialize)]
struct ProofRequired<'a> {
    status: &'static str,
    message: &'a str,
    /// Where the payer can sign it in a browser.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete_url: Option<&'a str>,
}

impl<'a> Crediting<'a> {
    /// The account of the session's key. Also checks that the key works, before anything is paid.
    pub(crate) async fn of_key(
        session: &'a Session,
        args: &'a PaymentArgs,
        signature: Option<String>,
        json: bool,
    ) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct Balance {
            org_id: String,
        }
        let client = session.client()?;
        let org_id = client.get("/credits/balance").await?.json::<Balance>()?.org_id;
        Ok(Self { session, client, args, org_id, signature, wallet: None, json })
    }

    pub(crate) fn org_id(&self) -> &str {
        &self.org_id
    }

    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// The wallet, if it was opened.
    pub(crate) const fn wallet(&self) -> Option<&Wallet> {
        self.wallet.as_ref()
    }

    /// The wallet; asks for it at most once.
    pub(crate) fn open_wallet(&mut self) -> Result<&Wallet, Failure> {
        match self.wallet {
            Some(ref wallet) => Ok(wallet),
            None => Ok(self.wallet.insert(self.args.wallet.open()?)),
        }
    }

    /// Registers a payment, with the payer's proof if the service asks for one. The inner `Err` is a rejection for any
    /// other reason.
    pub(crate) async fn register(
        &mut self,
        claim: Claim<'_>,
        out: &mut dyn Write,
    ) -> Result<Result<Credited, Box<Refusal>>, Failure> {
        let mut retries = PaymentRetries::within(self.args.wait());
        let mut signature = self.signature.clone();
        loop {
            let Claim { plan_id, chain_id, hash, watched } = claim;
            let body = Body { plan_id, chain_id, tx_hash: hash, signature: signature.as_deref() };
            let refusal = match register(&self.client, "/credits/topup", &body, &mut retries, watched).await? {
                RegistrationResult::Accepted(response) => return Ok(Ok(response.json()?)),
                RegistrationResult::Refused(refusal) => refusal,
            };
            if refusal.code != "payer_proof_required" || signature.is_some() {
                return Ok(Err(refusal));
            }
            signature = Some(self.prove(&refusal, claim, out).await?);
        }
    }

    /// The payer's signature of the text that the service sent.
    async fn prove(&mut self, refusal: &Refusal, claim: Claim<'_>, out: &mut dyn Write) -> Result<String, Failure> {
        let effect = "Signing it credits the payment to this account, and links the wallet to it for top-ups.";
        let message = refusal.message.as_str();
        let request = Request { service: self.session.url(), message, effect };
        request.names(&[&self.org_id, &claim.hash.to_string(), &claim.chain_id.to_string()])?;
        if self.wallet.is_none() {
            self.wallet = self.args.wallet.given()?;
        }
        let Some(wallet) = &self.wallet else { return Err(self.ask_elsewhere(refusal, claim, out)?) };
        if !proof::is_for(message, wallet.address()) {
            return Err(Failure::Conflict(format!(
                "the payment did not come from wallet {}, so this wallet cannot prove it",
                wallet.address().to_checksummed()
            )));
        }
        let agreed = request.is_agreed(self.args.consent()).await;
        agreed.map_err(|failure| failure.and("The payment is not lost: fix this, then run the same command again."))?;
        Ok(wallet.sign_message(message))
    }

    /// Prints the text for a wallet whose key is not on this machine, and returns the failure to end with.
    fn ask_elsewhere(&self, refusal: &Refusal, claim: Claim<'_>, out: &mut dyn Write) -> Result<Failure, Failure> {
        let Claim { plan_id, chain_id, hash, .. } = claim;
        let message = refusal.message.as_str();
        let complete_url = complete_url(&refusal.body);
        let complete_url = complete_url.as_deref();
        let command = format!("metering topup --plan {plan_id} --chain {chain_id} --tx {hash} --signature 0x...");
        if self.json {
            write_json(out, &ProofRequired { status: "payer_proof_required", message, complete_url })?;
        } else {
            notice(
                "Sign the text below exactly as it is (EIP-191, personal_sign) with the wallet that paid, without a \
                 trailing line break.\n",
            );
            writeln!(out, "{}", proof::printable(message))?;
        }
        let page = complete_url
            .map(|url| format!("open {url} in a browser with the wallet that paid, or "))
            .unwrap_or_default();
        Ok(Failure::Conflict(format!(
            "the payer must sign the text on standard output first: {page}sign it and run `{command}`, or this command \
             again with the wallet's key"
        )))
    }
}

/// The page where the payer can sign in a browser, if the service has one.
fn complete_url(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Page {
        complete_url: String,
    }
    let Page { complete_url } = serde_json::from_slice(body).ok()?;
    let is_url = complete_url.starts_with("https://") || complete_url.starts_with("http://");
    (is_url && complete_url.bytes().all(|byte| byte.is_ascii_graphic())).then_some(complete_url)
}

impl Credited {
    pub(crate) fn write(&self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        if json {
            return write_json(out, self);
        }
        if self.already_credited {
            writeln!(out, "The payment was already credited to this account: it added {} credits.", self.amount_added)?;
        } else {
            writeln!(out, "Added {} credits.", self.amount_added)?;
        }
        let pairs: [(&str, &dyn Display); 2] = [("Balance", &self.credit_balance), ("Transaction", &self.tx_hash)];
        write_pairs(out, &pairs)
    }
}
