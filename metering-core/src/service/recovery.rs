//! Key recovery: replaces a lost key when the wallet that paid for the account signs a challenge.

use crate::access::key::ApiKey;
use crate::chains::address::Address;
use crate::chains::signature::{WalletSignature, signer, signing_digest};
use crate::error::Error;
use crate::payments::payment::RecoveryError;
use crate::payments::recovery::Challenge;
use crate::random::{SystemRandomness, random_digits};
use crate::service::Access;
use crate::service::config::ServiceConfig;
use crate::service::fields::Fields;
use crate::service::keys::recovered;
use crate::service::metering::Service;
use crate::service::payments::PaymentState;
use crate::wire::{ChallengeRequest, ChallengeResponse, VerifyRequest, VerifyResponse};

/// 190 bits: another wallet's challenge cannot be guessed and used up.
const NONCE_DIGITS: usize = 32;

/// Key recovery by a wallet, from [`Service::recovery`].
#[derive(Debug, Clone, Copy)]
pub struct Recovery<'s> {
    access: &'s Access,
    config: &'s ServiceConfig,
    payments: &'s PaymentState,
}

impl Service {
    /// Key recovery by the wallet that paid for an account.
    #[must_use]
    pub fn recovery(&self) -> Recovery<'_> {
        Recovery { access: &self.access, config: &self.config, payments: &self.payments }
    }
}

impl Recovery<'_> {
    /// Opens a challenge for a wallet to sign.
    ///
    /// [`Recovery::verify`] has an example.
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`RecoveryError::NoLinkedWallet`], or when the store fails.
    pub async fn challenge(self, request: &ChallengeRequest) -> Result<ChallengeResponse, Error> {
        let mut fields = Fields::default();
        let address = fields.parsed("address", request.address.as_deref());
        let address: Address = address.ok_or_else(|| fields.into_error())?;
        let account = self.payments.store()?.account_by_payer(&address).await?.ok_or(RecoveryError::NoLinkedWallet)?;
        let nonce = random_digits(&SystemRandomness, NONCE_DIGITS);
        let lifetime = self.payments.settings.challenge_lifetime;
        let expires_at = self.access.now().saturating_add(lifetime);
        let message = Challenge::message(&self.config.name(), address, &nonce, expires_at, &self.config.terms_url);
        let response = ChallengeResponse {
            nonce: nonce.clone(),
            message: message.clone(),
            expires_at: expires_at.to_string(),
            expires_in: lifetime.as_secs(),
        };
        let challenge = Challenge { nonce, address, account: account.id, message, expires_at, failures: 0 };
        self.payments.store()?.open_challenge(challenge).await?;
        Ok(response)
    }

    /// Replaces the key of a challenge's account, if the wallet signed the challenge.
    ///
    /// With the shop of the example `sell_a_plan`, for a customer who has bought a plan there:
    ///
    /// ```
    /// use metering_core::wire::{ChallengeRequest, VerifyRequest};
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/sell_a_plan/doc_test.rs"));
    /// # use in_memory::MemoryChain;
    /// # use std::sync::Arc;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let chain = Arc::new(MemoryChain::default());
    /// # let (shop, customer, quote) = shop::quoted(&chain).await?;
    /// # let payment = chain.pay(customer.address(), quote.recipient.parse()?, quote.amount_atomic.parse()?);
    /// # let claim = serde_json::json!({"signup_nonce": quote.signup_nonce, "tx_hash": payment});
    /// # let claimed = shop.payments().claim(&serde_json::from_value(claim)?).await?;
    /// let address = Some(customer.address().to_string());
    /// let challenge = shop.recovery().challenge(&ChallengeRequest { address: address.clone() }).await?;
    /// let (nonce, signature) = (Some(challenge.nonce), Some(customer.sign(&challenge.message)));
    /// let rotated = shop.recovery().verify(&VerifyRequest { address, nonce, signature }).await?;
    /// assert_eq!(rotated.org_id, claimed.org_id);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ValidationFailed`], [`Error::Recovery`], or when the store fails.
    pub async fn verify(self, request: &VerifyRequest) -> Result<VerifyResponse, Error> {
        let (address, nonce, signature) = read(request)?;
        if !is_nonce(&nonce) {
            return Err(RecoveryError::UnknownChallenge.into());
        }
        let challenge = self.payments.store()?.challenge(&nonce).await?.ok_or(RecoveryError::UnknownChallenge)?;
        if challenge.address != address {
            return Err(RecoveryError::AddressMismatch.into());
        }
        if challenge.expires_at < self.access.now() {
            return Err(RecoveryError::Expired.into());
        }
        let signature = WalletSignature::parse(&signature);
        let proven = match &signature {
            Ok(signature) => self.is_wallets(&challenge, signature).await?,
            Err(_) => false,
        };
        if !proven {
            self.payments.store()?.fail_challenge(&nonce).await?;
            return Err(RecoveryError::InvalidSignature.into());
        }
        let key = ApiKey::generate(&SystemRandomness);
        let account = self.payments.store()?.rotate_key(&nonce, key.hash(), self.access.now()).await?;
        let account = account.ok_or(RecoveryError::UnknownChallenge)?;
        Ok(recovered(self.access, &account, key).await)
    }

    /// Whether the wallet signed the challenge's text: with its private key, or by its contract (EIP-1271), which is
    /// called only on the chain that the account was paid on.
    async fn is_wallets(self, challenge: &Challenge, signature: &WalletSignature) -> Result<bool, Error> {
        if signer(&challenge.message, signature) == Some(challenge.address) {
            return Ok(true);
        }
        let account = self.access.store.account(&challenge.account).await?;
        let payer = account.and_then(|account| account.payer);
        let Some(reader) = payer.and_then(|payer| self.payments.readers().get(&payer.chain_id)) else {
            return Ok(false);
        };
        let digest = signing_digest(&challenge.message);
        let accepted = reader.accepts_signature(challenge.address, digest, signature.as_bytes()).await;
        accepted.map_err(|error| RecoveryError::Chain(error).into())
    }
}

/// Whether a text can be a nonce. Other texts never reach the store, since some stores cannot hold every text.
fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn read(request: &VerifyRequest) -> Result<(Address, String, String), Error> {
    let mut fields = Fields::default();
    let address = fields.parsed("address", request.address.as_deref());
    let nonce = fields.required("nonce", request.nonce.clone());
    let signature = fields.required("signature", request.signature.clone());
    match (address, nonce, signature) {
        (Some(address), Some(nonce), Some(signature)) => Ok((address, nonce, signature)),
        _ => Err(fields.into_error()),
    }
}
