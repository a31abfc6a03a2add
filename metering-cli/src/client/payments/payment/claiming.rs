//! Claims the account and key that a payment bought.

use std::io::Write;

use metering_client::Refusal;
use metering_core::chains::TxHash;
use metering_evm::Wallet;
use serde::Serialize;

use crate::client::access::rotate::rotated;
use crate::client::payments::payment::arguments::PaymentArgs;
use crate::client::payments::payment::connection::ChainConnection;
use crate::client::payments::payment::entry::{Entry, Payment};
use crate::client::payments::payment::journal::Pending;
use crate::client::payments::payment::paid::Issued;
use crate::client::payments::payment::registration::{RegistrationResult, Watched, is_final, refused, register};
use crate::client::payments::payment::retry::PaymentRetries;
use crate::client::session::Session;
use crate::failure::Failure;
use crate::output::notice;

/// The context of a claim.
pub(crate) struct ClaimContext<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) args: &'a PaymentArgs,
    /// The wallet, if it was opened.
    pub(crate) wallet: Option<Wallet>,
    pub(crate) json: bool,
}

#[derive(Serialize)]
struct Body<'a> {
    signup_nonce: &'a str,
    tx_hash: TxHash,
}

/// Claims the account of a payment that was sent.
pub(crate) async fn claim(
    pending: Pending,
    connection: Option<&ChainConnection>,
    context: ClaimContext<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let entry = pending.entry();
    let (Some(signup), Some(tx_hash)) = (entry.signup(), entry.payment.hash()) else { return Err(entry.conflict()) };
    let body = Body { signup_nonce: signup.signup_nonce.expose(), tx_hash };
    let mut retries = PaymentRetries::within(context.args.wait());
    let client = context.session.anonymous();
    match register(&client, "/signup/pay/claim", &body, &mut retries, Some(Watched { entry, connection })).await? {
        RegistrationResult::Accepted(response) => {
            let issued: Issued = response.json()?;
            context.finish(pending, &issued, tx_hash, out)
        }
        RegistrationResult::Refused(refusal) if refusal.code == "already_claimed" => {
            context.finish_by_rotation(pending, &refusal, tx_hash, out).await
        }
        RegistrationResult::Refused(refusal) => Err(refuse(pending, &refusal)?),
    }
}

impl ClaimContext<'_> {
    /// Stores the key, prints the result, then removes the payment from the journal.
    fn finish(self, pending: Pending, issued: &Issued, tx_hash: TxHash, out: &mut dyn Write) -> Result<(), Failure> {
        if let Err(failure) = issued.keep(self.session, out) {
            pending.finish()?;
            return Err(failure);
        }
        let bill = &pending.entry().bill;
        let account = issued.account(self.session, "approved").paid_by(bill, tx_hash);
        account.write(out, self.json, &format!("Paid {bill} in transaction {tx_hash}."))?;
        out.flush()?;
        pending.finish()
    }

    /// The account was created, but its key was lost on the way: the wallet that paid gets a new one.
    async fn finish_by_rotation(
        mut self,
        pending: Pending,
        refusal: &Refusal,
        tx_hash: TxHash,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let payer = pending.entry().payer;
        if self.wallet.is_none() && pending.entry().payment.signed().is_some() {
            self.wallet = Some(self.args.wallet.open()?);
        }
        let Some(wallet) = self.wallet.take().filter(|wallet| wallet.address() == payer) else {
            let (_journal, file) = pending.set_aside(&refusal.code)?;
            return Err(Failure::Conflict(format!(
                "the account was created and its key was already returned: get a new one with `metering rotate`, using \
                wallet {} or --address {0} --challenge-only. A record of the payment is kept in {}",
                payer.to_checksummed(),
                file.display()
            )));
        };
        notice("The account was created, but its key was lost on the way; replacing it.");
        self.args.consent().ask("The account's current key, if anyone has it, stops working. Replace it?").await?;
        let issued = rotated(self.session, &wallet, self.args.consent()).await?;
        self.finish(pending, &issued, tx_hash, out)
    }
}

/// The failure for a payment that the service rejects.
fn refuse(mut pending: Pending, refusal: &Refusal) -> Result<Failure, Failure> {
    if matches!(pending.entry().payment, Payment::Elsewhere(_)) && wrong_transaction(refusal, pending.entry()) {
        // The quote can still be paid: the wrong transaction was named, or the wrong payment was made.
        pending.advance(Payment::Unpaid)?;
        let note = "The quote is kept: `metering signup-pay --tx HASH` claims it with another payment.";
        return Ok(refused(refusal, note));
    }
    if !is_final(refusal) && refusal.code != "not_found" {
        return Ok(refused(refusal, "The payment is kept: fix this, then run `metering signup-pay` again."));
    }
    let (_journal, file) = pending.set_aside(&refusal.code)?;
    Ok(refused(refusal, &format!("A record of the payment is kept in {}.", file.display())))
}

fn wrong_transaction(refusal: &Refusal, entry: &Entry) -> bool {
    let of_transaction = [
        "payment_mismatch",
        "payer_mismatch",
        "payment_predates_quote",
        "payment_predates_service",
        "tx_already_used",
        "tx_reverted",
        "invalid_tx_hash",
    ];
    let quote_is_open = entry.signup().is_some_and(|signup| signup.paid_elsewhere && !signup.expires_at.is_long_over());
    quote_is_open && of_transaction.contains(&refusal.code.as_str())
}
