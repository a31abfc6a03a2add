//! Claims that name another quote of the same wallet: each quote has a different amount, and people request a second
//! one after paying the first.

use crate::chains::chain::TransactionStatus;
use crate::chains::signature::WalletSignature;
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::payments::payment::{Payment, PaymentError, PaymentFault, PaymentTarget};
use crate::payments::proof::claim_proof_message;
use crate::payments::quote::Quote;
use crate::service::Payments;
use crate::service::payments::arrivals::payment_targets;
use crate::service::payments::state::find_chain;
use crate::wire::ErrorCode;

impl Payments<'_> {
    /// The quote to claim instead of `quote`, whose claim was refused for `refusal`: the quote of the same wallet that
    /// the transaction pays, if the wallet signed the proof.
    pub(super) async fn other_quote(
        self,
        quote: &Quote,
        tx: TxRef,
        refusal: Error,
        proof: Option<&WalletSignature>,
    ) -> Result<Quote, Error> {
        let Some(fault) = mismatch(&refusal) else { return Err(refusal) };
        let Some((other, payment)) = self.paid_instead(quote, tx).await? else { return Err(refusal) };
        let message = claim_proof_message(&self.config.name(), payment.payer, tx);
        if let Some(proof) = proof {
            let from_contract = self.is_from_contract(&payment).await?;
            if self.proven(&payment, from_contract, &message, proof).await?.is_some() {
                return Ok(other);
            }
        }
        Err(PaymentError::OtherQuote { fault, message, is_signed: proof.is_some() }.into())
    }

    /// The open signup quote of the same wallet that a transaction pays, or will pay once it is in a block.
    async fn paid_instead(self, quote: &Quote, tx: TxRef) -> Result<Option<(Quote, Payment)>, Error> {
        let store = self.state.store()?;
        let chain = find_chain(&self.config.chains, tx.chain_id)?;
        let status = self.state.reader(tx.chain_id)?.transaction(&tx.hash).await.map_err(PaymentError::Chain)?;
        let payment_at = |target: &PaymentTarget| match &status {
            TransactionStatus::Mined(evidence) => target.payment(tx, evidence).ok(),
            TransactionStatus::Pending { transaction: Some(pending), .. } => {
                // Its block is not known yet, so it counts as mined when the quote was made.
                let evidence = target.predicted_evidence(pending, false)?;
                let payment = target.payment(tx, &evidence).ok()?;
                Some(Payment { mined_at: quote.created_at, ..payment })
            }
            _ => None,
        };
        for target in payment_targets(store, chain, &store.plans().await?).await? {
            let Some(payment) = payment_at(&target).filter(|payment| payment.payer == quote.payer) else { continue };
            if let Some(other) = store.quote_paid_by(&payment).await?
                && other.top_up.is_none()
                && other.nonce != quote.nonce
            {
                return Ok(Some((other, payment)));
            }
        }
        Ok(None)
    }
}

/// Why a transaction is not a quote's payment, if it may be another quote's.
fn mismatch(refusal: &Error) -> Option<PaymentFault> {
    let Error::Payment(refused) = refusal else { return None };
    match &**refused {
        PaymentError::Unfit(fault) if fault.code() == ErrorCode::PaymentMismatch => Some(fault.clone()),
        _ => None,
    }
}
