//! The arguments of commands that can pay.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clap::Args;

use crate::client::paying::amount::Amount;
use crate::client::paying::journal::Journal;
use crate::client::paying::payer::{Agreement, Payer};
use crate::client::paying::terms::Terms;
use crate::client::paying::tokens::{Token, Tokens};
use crate::client::payments::wallet::WalletArgs;
use crate::client::session::Session;
use crate::failure::Failure;

/// How much may be paid, and from which wallet.
#[derive(Debug, Clone, Args)]
pub(crate) struct PayArgs {
    /// Pay from the wallet if the service asks for payment (HTTP 402 with x402 offers). Never pays twice for one call:
    /// a payment signed for it earlier is sent again.
    #[arg(long, requires = "max", help_heading = "Payment")]
    pub(crate) pay: bool,
    /// The maximum to pay for one call, in tokens.
    #[arg(long, value_name = "AMOUNT", requires = "pay", help_heading = "Payment")]
    max: Option<Amount>,
    /// The maximum to pay for all calls in 24 hours, in tokens, instead of the profile's limit.
    #[arg(long, value_name = "AMOUNT", requires = "pay", help_heading = "Payment")]
    daily_limit: Option<Amount>,
    /// Also pay with this token, as CHAIN_ID:CONTRACT:DECIMALS. Known dollar tokens are always allowed.
    #[arg(long = "token", value_name = "TOKEN", requires = "pay", help_heading = "Payment")]
    tokens: Vec<Token>,
    #[command(flatten)]
    wallet: WalletArgs,
}

impl PayArgs {
    /// The payer; `None` without `--pay`. Does not prompt yet, because not every call needs a payment.
    pub(crate) fn payer(&self, session: &Session, again: bool, is_quiet: bool) -> Option<Payer> {
        let max = self.max.filter(|_| self.pay)?;
        let settings = &session.profile.settings.pay;
        let tokens = Tokens::with(self.tokens.iter().chain(&settings.tokens).cloned());
        Some(Payer {
            journal: Journal::of(&session.profile),
            terms: Terms { max, exactly: None, tokens },
            agreement: Agreement::Daily(self.daily_limit.unwrap_or(settings.daily_limit())),
            wallet_args: self.wallet.clone(),
            wallet: OnceLock::new(),
            again: AtomicBool::new(again),
            is_quiet,
        })
    }

    /// The payer of a command that cannot prompt: its wallet must be given. `None` without `--pay`.
    pub(crate) fn payer_without_prompt(&self, session: &Session) -> Result<Option<Arc<Payer>>, Failure> {
        let Some(payer) = self.payer(session, false, false) else { return Ok(None) };
        let Some(wallet) = self.wallet.given()? else {
            return Err(Failure::Usage(
                "no wallet to pay from, and no terminal to prompt on: set METERING_CLIENT_WALLET_KEY to the private key, or \
                 name the encrypted keystore file with --keystore"
                    .to_owned(),
            ));
        };
        let _ = payer.wallet.set(wallet);
        Ok(Some(Arc::new(payer)))
    }
}
