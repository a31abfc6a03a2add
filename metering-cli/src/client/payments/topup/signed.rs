//! `metering topup --sign`: buys credits by signing a token transfer, which the service executes. The wallet needs no
//! coins for gas, and no connection to the chain.

use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clap::Args;
use http::Method;
use metering_client::{ClientError, Refusal};
use metering_core::chains::TxHash;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::client::paying::amount::Amount;
use crate::client::paying::journal::Journal;
use crate::client::paying::payer::{Agreement, Payer};
use crate::client::paying::terms::{Terms, list_offers};
use crate::client::paying::tokens::{Token, Tokens};
use crate::client::paying::transport::PayingTransport;
use crate::client::payments::payment::consent::Consent;
use crate::client::payments::wallet::WalletArgs;
use crate::client::session::Session;
use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::table::write_pairs;

/// The route whose only product is credits.
const TARGET: &str = "/credits/pay";

/// A payment by signature.
#[derive(Debug, Args)]
pub(crate) struct SignArgs {
    /// Sign a transfer of a token that the service offers, and let the service execute it: no gas, no plan.
    #[arg(long, conflicts_with_all = ["plan", "chain", "tx", "signature", "abandon"], help_heading = "By signature")]
    pub(crate) sign: bool,
    /// How much to pay, in tokens: one of the amounts on offer.
    #[arg(long, value_name = "AMOUNT", requires = "sign", help_heading = "By signature")]
    amount: Option<Amount>,
    /// Also pay with this token, as CHAIN_ID:CONTRACT:DECIMALS. Known dollar tokens are always allowed.
    #[arg(long = "token", value_name = "TOKEN", requires = "sign", help_heading = "By signature")]
    tokens: Vec<Token>,
    /// Pay again, although an earlier signature for the same purchase may still be executed.
    #[arg(long, requires = "sign", help_heading = "By signature")]
    again: bool,
}

/// The service's report of the payment.
#[derive(Deserialize)]
struct Credited {
    credited: Box<RawValue>,
    balance: Box<RawValue>,
    transaction: Option<Transaction>,
}

/// A transaction, with or without its chain.
#[derive(Deserialize)]
#[serde(untagged)]
enum Transaction {
    Hash(TxHashText),
    OnChain { hash: TxHashText },
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct TxHashText(TxHash);

impl TryFrom<String> for TxHashText {
    type Error = metering_core::chains::TxHashError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl SignArgs {
    /// Pays, and prints what was credited.
    pub(crate) async fn run(
        &self,
        session: &Session,
        consent: Consent,
        wallet: &WalletArgs,
        as_json: bool,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        session.key()?;
        let tokens = Tokens::with(self.tokens.iter().chain(&session.profile.settings.pay.tokens).cloned());
        let Some(amount) = self.amount else { return Err(self.unchosen(session, &tokens).await) };
        consent.can_be_given()?;
        let payer = Payer {
            journal: Journal::of(&session.profile),
            terms: Terms { max: amount, exactly: Some(amount), tokens },
            agreement: Agreement::Asked(consent),
            wallet_args: wallet.clone(),
            wallet: OnceLock::new(),
            again: AtomicBool::new(self.again),
            is_quiet: false,
        };
        let transport = PayingTransport::new(session.transport(), session.url().clone(), Arc::new(payer));
        let client = session.client_over(Arc::new(transport));
        let opened = client.open(Method::POST, TARGET, None).await.map_err(unpaid)?;
        // The payment stays in the journal until this has arrived completely.
        let document: Document<Credited> = Document::of(opened.read_to_end().await?)?;
        if as_json {
            return document.write_json(out);
        }
        let Credited { credited, balance, transaction } = &document.content;
        let transaction = transaction.as_ref().map_or_else(|| "-".to_owned(), |found| found.hash().to_string());
        write_pairs(out, &[("Credited", &plain(credited)), ("Balance", &plain(balance)), ("Transaction", &transaction)])
    }

    /// The failure that lists the amounts to choose from.
    async fn unchosen(&self, session: &Session, tokens: &Tokens) -> Failure {
        let client = session.client_over(session.transport());
        match client.open(Method::POST, TARGET, None).await {
            Ok(_) => Failure::Failed("the service does not ask for a payment".to_owned()),
            Err(ClientError::Refused(refusal)) if refusal.status == http::StatusCode::PAYMENT_REQUIRED => {
                match list_offers(&refusal.headers, &refusal.body, tokens) {
                    Ok(list) => Failure::Usage(format!("name the amount to pay with --amount: {list}")),
                    Err(failure) => failure,
                }
            }
            Err(error) => unpaid(error),
        }
    }
}

/// The failure for a service without this route: an older version, or one that takes no payments.
fn unpaid(error: ClientError) -> Failure {
    let is_absent = |refusal: &Refusal| matches!(refusal.status.as_u16(), 404 | 405);
    match &error {
        ClientError::Refused(refusal) if is_absent(refusal) => Failure::NotFound(format!(
            "the service takes no payments by signature ({}); `metering plans` lists its plans",
            refusal.code
        )),
        _ => error.into(),
    }
}

impl Transaction {
    const fn hash(&self) -> TxHash {
        match self {
            Self::Hash(hash) | Self::OnChain { hash } => hash.0,
        }
    }
}

/// An amount as the service wrote it, without the quotes of JSON.
fn plain(amount: &RawValue) -> &str {
    amount.get().trim_matches('"')
}
