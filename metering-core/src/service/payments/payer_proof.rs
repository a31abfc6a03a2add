//! Proof that a payment is the caller's: hashes are public, so an account that names one must show that it owns the
//! payer.

use crate::access::account::{Account, AccountId};
use crate::chains::signature::{WalletSignature, signer, signing_digest};
use crate::chains::transaction::TxRef;
use crate::error::Error;
use crate::payments::payment::{Payment, PaymentError};
use crate::payments::proof::payer_proof_message;
use crate::service::Payments;
use crate::service::payments::top_ups::{Entitlement, is_own_wallet};
use crate::store::QuotePrecedence;

impl Payments<'_> {
    /// The wallets that are linked to the account by an earlier proof.
    pub(in crate::service) async fn linked_wallets(self, account: &AccountId) -> Result<Vec<String>, Error> {
        let wallets = self.state.store()?.linked_wallets(account).await?;
        Ok(wallets.iter().map(ToString::to_string).collect())
    }

    /// Decides whether the account may use the payment. If not, the error requests the payer's signature.
    pub(super) async fn entitlement(
        self,
        account: &Account,
        plan_id: &str,
        payment: &Payment,
        proof: Option<&WalletSignature>,
    ) -> Result<Entitlement, Error> {
        let from_contract = self.is_from_contract(payment).await?;
        if !from_contract && is_own_wallet(account, payment) {
            return Ok(Entitlement::OWN_WALLET);
        }
        let message = payer_proof_message(&self.config.name(), &account.id, payment.payer, payment.tx);
        if let Some(proof) = proof
            && let Some(entitlement) = self.proven(payment, from_contract, &message, proof).await?
        {
            return Ok(entitlement);
        }
        let linked = !from_contract && self.state.store()?.linked_accounts(&payment.payer).await?.contains(&account.id);
        if linked || !self.state.settings.require_payer_proof {
            return Ok(Entitlement::AFTER_QUOTES);
        }
        let wallet = payment.payer.to_checksummed();
        let complete_url = self.complete_url(account, plan_id, payment);
        let page =
            if complete_url.is_some() { " A browser with that wallet can do both at `complete_url`." } else { "" };
        let failed = if proof.is_some() { "The signature is not from the payer's wallet. " } else { "" };
        let hint = if from_contract {
            format!(
                "{failed}The payment came from {wallet}, which is a contract: its address alone does not show whose \
                 payment it is. Send the same request again with a `signature` over `message` that the contract \
                 accepts (EIP-1271).{page} If others use the contract too (an exchange or a router), ask the operator to \
                 assign the payment."
            )
        } else {
            format!(
                "{failed}The payment came from {wallet}, which is not known to be this account's wallet. Sign \
                 `message` unchanged with that wallet (EIP-191, personal_sign), and send the same request again with \
                 the result as `signature`.{page}"
            )
        };
        Err(PaymentError::ProofRequired { message, hint, complete_url }.into())
    }

    /// The address of the page where the payer signs, for this account and payment.
    fn complete_url(self, account: &Account, plan_id: &str, payment: &Payment) -> Option<String> {
        let page = self.config.links.complete.as_ref()?;
        let TxRef { chain_id, hash } = payment.tx;
        // Ids of accounts and plans have no characters that a query would have to encode.
        Some(format!("{page}?account={}&plan={plan_id}&chain={chain_id}&tx={hash}", account.id))
    }

    /// Whether a contract paid. Its address proves nothing: a router or an exchange pays for many people, and on
    /// another chain the same address may be someone else's contract.
    pub(super) async fn is_from_contract(self, payment: &Payment) -> Result<bool, Error> {
        let reader = self.state.reader(payment.tx.chain_id)?;
        Ok(reader.has_code(payment.payer).await.map_err(PaymentError::Chain)?)
    }

    /// Checks that the payer signed the message. Only a private key's signature links the wallet: a contract's response
    /// (EIP-1271) is valid for one chain at one time.
    pub(super) async fn proven(
        self,
        payment: &Payment,
        from_contract: bool,
        message: &str,
        proof: &WalletSignature,
    ) -> Result<Option<Entitlement>, Error> {
        let quotes = QuotePrecedence::Account;
        if !from_contract {
            let signed = signer(message, proof) == Some(payment.payer);
            return Ok(signed.then_some(Entitlement { links: true, quotes }));
        }
        let reader = self.state.reader(payment.tx.chain_id)?;
        let accepted = reader.accepts_signature(payment.payer, signing_digest(message), proof.as_bytes()).await;
        Ok(accepted.map_err(PaymentError::Chain)?.then_some(Entitlement { links: false, quotes }))
    }
}
