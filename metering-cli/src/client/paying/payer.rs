//! The payer of calls, and its limits.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use metering_core::{Clock, SystemClock, SystemRandomness};
use metering_evm::Wallet;

use crate::client::paying::amount::Amount;
use crate::client::paying::call::Call;
use crate::client::paying::entry::{self, Entry};
use crate::client::paying::journal::{Book, Journal, Payment};
use crate::client::paying::offers::Offered;
use crate::client::paying::payload;
use crate::client::paying::signing::{authorization, sign};
use crate::client::paying::state::State;
use crate::client::paying::terms::Terms;
use crate::client::payments::payment::consent::Consent;
use crate::client::payments::wallet::WalletArgs;
use crate::failure::Failure;
use crate::output::notice;

/// Pays for calls with one wallet.
#[derive(Debug)]
pub(crate) struct Payer {
    pub(crate) journal: Journal,
    pub(crate) terms: Terms,
    pub(crate) agreement: Agreement,
    /// Where the wallet comes from, once it is needed.
    pub(crate) wallet_args: WalletArgs,
    pub(crate) wallet: OnceLock<Wallet>,
    /// Whether the user wants another payment although an earlier one may still be executed. Once.
    pub(crate) again: AtomicBool,
    /// Whether payments are not reported on stderr.
    pub(crate) is_quiet: bool,
}

/// How the user agrees to a payment.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Agreement {
    /// In advance, up to this much in 24 hours.
    Daily(Amount),
    /// The user is asked.
    Asked(Consent),
}

impl Payer {
    /// Signs a payment for a call and writes it down. It is on disk when this returns, and nothing was sent.
    pub(super) async fn sign(&self, call: &Call, offered: &Offered) -> Result<Entry, Failure> {
        let chosen = self.terms.choose(offered)?;
        self.check_limit(&self.journal.lock().await?.read()?, chosen.amount, &chosen.token.symbol)?;
        let wallet = self.wallet()?;
        if let Agreement::Asked(consent) = self.agreement {
            let (amount, symbol) = (chosen.amount, &chosen.token.symbol);
            let (chain, to) = (chosen.offer.chain_id, chosen.offer.pay_to.to_checksummed());
            notice(&format!(
                "To pay: {amount} {symbol} on chain {chain} to {to}, from {}.",
                wallet.address().to_checksummed()
            ));
            consent.ask("Pay this?").await?;
        }
        let now = SystemClock.now();
        let authorization = authorization(&chosen, wallet.address(), now, &SystemRandomness);
        let signature = sign(wallet, &authorization, &chosen);
        let header = payload::header(offered, chosen.offer, &authorization, &signature)?;
        let entry = Entry {
            id: entry::id(authorization.nonce),
            at: now,
            call: call.fingerprint.clone(),
            account: call.account.clone(),
            method: call.method.clone(),
            url: call.url.clone(),
            is_automatic: matches!(self.agreement, Agreement::Daily(_)),
            amount: chosen.amount,
            symbol: chosen.token.symbol.clone(),
            units: chosen.offer.amount,
            chain_id: chosen.offer.chain_id,
            token: chosen.offer.asset,
            payer: wallet.address(),
            pay_to: chosen.offer.pay_to,
            valid_before: authorization.valid_before,
            header: header.name.to_owned(),
            payment: header.value,
        };
        // Another run may have paid since.
        let journal = self.journal.lock().await?;
        self.check_limit(&journal.read()?, entry.amount, &entry.symbol)?;
        journal.add(&entry)?;
        Ok(entry)
    }

    /// Gives up a payment for a call that may still be executed, if the user asked for another one.
    pub(super) async fn give_up(&self, call: &Call) -> Result<(), Failure> {
        if !self.again.swap(false, Ordering::SeqCst) {
            return Ok(());
        }
        while let Some(payment) = self.journal.open_payment(&call.fingerprint).await? {
            self.journal.change(&payment.entry.id, State::GivenUp).await?;
        }
        Ok(())
    }

    /// Whether another payment may replace this one, because the service refused it every time and another wallet or
    /// account pays now. A wallet that would need a prompt counts as the same one.
    pub(super) fn is_superseded(&self, payment: &Payment, call: &Call) -> Result<bool, Failure> {
        let Payment { entry, state } = payment;
        if !state.is_refused() {
            return Ok(false);
        }
        if self.wallet.get().is_none()
            && let Some(wallet) = self.wallet_args.given()?
        {
            let _ = self.wallet.set(wallet);
        }
        let is_other = |wallet: &Wallet| wallet.address() != entry.payer;
        Ok(entry.account != call.account || self.wallet.get().is_some_and(is_other))
    }

    /// Refuses to continue a payment whose amount differs from the current offer.
    pub(super) fn check_continues(&self, entry: &Entry) -> Result<(), Failure> {
        match self.terms.exactly.filter(|exactly| *exactly != entry.amount) {
            Some(exactly) => Err(Failure::Conflict(format!(
                "a payment of {entry} is pending, not of {exactly}: continue it with the same amount, or add --again to \
                 give it up and pay another one"
            ))),
            None => Ok(()),
        }
    }

    /// Reports on stderr.
    pub(super) fn report(&self, text: &str) {
        if !self.is_quiet {
            notice(text);
        }
    }

    fn check_limit(&self, book: &Book, amount: Amount, symbol: &str) -> Result<(), Failure> {
        let Agreement::Daily(limit) = self.agreement else { return Ok(()) };
        let spent = book.spent(SystemClock.now());
        if spent.saturating_add(amount) <= limit {
            return Ok(());
        }
        let left = limit.saturating_sub(spent);
        Err(Failure::OverLimit(format!(
            "{amount} {symbol} is more than the daily limit leaves: {left} of {limit}, with {spent} signed in the last 24 \
             hours; `metering config set daily-limit AMOUNT` changes it. Nothing was paid"
        )))
    }

    fn wallet(&self) -> Result<&Wallet, Failure> {
        if self.wallet.get().is_none() {
            let wallet = self.wallet_args.open()?;
            let _ = self.wallet.set(wallet);
        }
        self.wallet.get().ok_or_else(|| Failure::Failed("the wallet could not be opened".to_owned()))
    }
}
