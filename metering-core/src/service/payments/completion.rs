//! Top-ups that the payer completes, without the account's key: the wallet that paid chooses the account that gets the
//! credits.

use crate::access::account::AccountId;
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::payments::payment::PaymentError;
use crate::service::Payments;
use crate::service::fields::Fields;
use crate::service::payments::state::Claimant;
use crate::wire::{ChainIdInput, CompletionRequest, CompletionResponse, TopUpRequest};

impl Payments<'_> {
    /// Credits a payment to the account that its payer names. The signature is the proof, so no key is needed; the
    /// balance is not revealed.
    ///
    /// Without a signature, the error has the text to sign.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], or [`Error::Payment`] when the account does not exist, or as [`Payments::top_up`].
    pub async fn complete_top_up(self, request: &CompletionRequest) -> Result<CompletionResponse, Error> {
        let mut fields = Fields::default();
        let id = fields.required("org_id", request.org_id.as_deref());
        let (chain_id, tx_hash) = (request.chain_id, request.tx_hash.clone());
        let (named, hash) = (fields.required("chain_id", chain_id), fields.required("tx_hash", tx_hash.as_deref()));
        let (Some(id), Some(ChainIdInput(chain_id)), Some(hash)) = (id, named, hash) else {
            return Err(fields.into_error());
        };
        let id: AccountId = id.parse().map_err(|_| PaymentError::UnknownAccount)?;
        let hash = hash.parse().map_err(|_| PaymentError::InvalidTxHash)?;
        let account = self.access.store.account(&id).await?.filter(|account| account.revoked_at.is_none());
        let account = account.ok_or(PaymentError::UnknownAccount)?;
        let CompletionRequest { plan_id, signature, .. } = request.clone();
        let payment = TopUpRequest { plan_id, chain_id: Some(ChainIdInput(chain_id)), tx_hash, signature };
        // Not the account: anyone may send this, and must not use up the waits of its owner.
        let claimant = Claimant::Payment(TxRef { chain_id, hash });
        let credited = self.credit_paid(&account, &payment, claimant).await?;
        Ok(CompletionResponse {
            org_id: account.id.to_string(),
            amount_added: credited.amount_added,
            plan_id: credited.plan_id,
            tx_hash: credited.tx_hash,
            chain_id,
            already_credited: credited.already_credited,
        })
    }
}
