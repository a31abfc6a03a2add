//! Wallets that sign in to use the credits of their accounts without a key (the extension `sign-in-with-x` of x402).
//!
//! No challenge is stored beforehand: a sign-in is valid because it names this service and is at most five minutes old,
//! and works once because its nonce is stored when it is used. Sign-ins of unknown wallets are not stored, so they cost
//! no writes. They cannot be used later, because a sign-in must be newer than its wallet's account.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use metering_core::access::{Account, Key, KeyFault, KeyHash, Payer, Scope};
use metering_core::chains::{AccountCode, ChainError};
use metering_core::payments::RecoveryError;
use metering_core::{Error, Randomness, SystemRandomness};
use sha3::{Digest, Sha3_256};

use crate::offers::{Offers, SignInRefusal};
use crate::settling::Settling;
use crate::signed_payments::SignedPayments;
use crate::wire::x402::{SignIn, SignInTerms, Site, sign_in_extension};

/// How long a wallet has to sign, from the 402 on.
const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// How long a used nonce is remembered: longer than any node accepts it, also if the clocks of the nodes differ.
const REMEMBERED: Duration = Duration::from_secs(15 * 60);
/// In printable ASCII: wallets show it.
const STATEMENT: &str = "Sign in to use the credits of this wallet, or to get an API key for them.";
/// Separates the hashes of nonces from all others in the same table.
const USED: &[u8] = b"metering: the sign-in of a wallet ";

impl SignedPayments {
    /// The message that wallets may sign to sign in, for a 402 with these offers. `None` if they cannot sign in.
    pub(crate) fn sign_in_terms(&self, offers: &Offers, uri: &str) -> Option<serde_json::Value> {
        let site = self.sign_in_site()?;
        let mut nonce = [0; 16];
        SystemRandomness.fill(&mut nonce);
        let (nonce, issued_at) = (hex::encode(nonce), self.clock.now());
        let expires_at = issued_at.saturating_add(LIFETIME);
        let chain_ids = chain_ids(offers);
        let (statement, nonce, chain_ids) = (STATEMENT, nonce.as_str(), chain_ids.as_slice());
        Some(sign_in_extension(&SignInTerms { site, uri, statement, nonce, issued_at, expires_at, chain_ids }))
    }

    /// The first key of the account whose wallet signed in, if it may manage keys and be used from this address. The
    /// sign-in is used up.
    ///
    /// # Errors
    /// [`Error::SignIn`]; [`RecoveryError::NoLinkedWallet`] when the wallet has no account; [`Error::KeyNotAllowed`];
    /// or when the chain of a contract wallet or the store cannot be read.
    pub async fn signed_in_key(&self, sign_in: &str, address: Option<IpAddr>) -> Result<Key, Error> {
        let hash = match self.wallet_account(sign_in).await? {
            Ok((_, hash)) => hash,
            Err(SignInRefusal::NoAccount { .. }) => return Err(RecoveryError::NoLinkedWallet.into()),
            Err(refusal) => return Err(Error::SignIn { refusal: Arc::new(refusal), price: None }),
        };
        let not_live = Error::KeyRefused(KeyFault::NotLive);
        let holder = self.settling.store.key_holder(&hash).await?.ok_or(not_live.clone())?;
        holder.check(Some(Scope::Manage), address, self.clock.now())?;
        holder.key().cloned().ok_or(not_live)
    }

    /// The account of the wallet that signed in, and the secret of its first key.
    pub(crate) async fn wallet_account(
        &self,
        sign_in: &str,
    ) -> Result<Result<(Account, KeyHash), SignInRefusal>, Error> {
        let Some(site) = self.sign_in_site() else { return Err(Error::Unauthorized) };
        let sign_in = match SignIn::parse(sign_in) {
            Ok(sign_in) => sign_in,
            Err(malformed) => return Ok(Err(SignInRefusal::Malformed(malformed))),
        };
        let now = self.clock.now();
        if let Err(fault) = sign_in.check(site, &chain_ids(self.offers()), now) {
            return Ok(Err(SignInRefusal::Fault(fault)));
        }
        let wallet = sign_in.wallet();
        let is_by_key = sign_in.is_signed_by_key();
        let account = self.settling.store.account_by_payer(&wallet).await?;
        if !is_by_key {
            // A chain is read only for the wallet of a customer.
            let payer = account.as_ref().and_then(|account| account.payer);
            let Some(Payer { chain_id, .. }) = payer else { return Ok(Err(SignInRefusal::Signature { wallet })) };
            if chain_id != sign_in.chain_id() {
                return Ok(Err(SignInRefusal::OtherChain { wallet, chain_id }));
            }
            if !accepts(&self.settling, &sign_in).await.map_err(RecoveryError::Chain)? {
                return Ok(Err(SignInRefusal::Signature { wallet }));
            }
        }
        let Some(account) = account else { return Ok(Err(SignInRefusal::NoAccount { wallet })) };
        let is_older = sign_in.issued_at().is_none_or(|issued_at| issued_at <= account.created_at);
        let nonce = Sha3_256::new_with_prefix(USED).chain_update(sign_in.nonce()).finalize().into();
        let store = &self.settling.store;
        if is_older || !store.use_sign_in(nonce, now.saturating_add(REMEMBERED)).await? {
            return Ok(Err(SignInRefusal::Used));
        }
        let key = store.first_key(&account.id).await?.ok_or(Error::Unauthorized)?;
        Ok(Ok((account, key)))
    }

    /// The service that wallets sign in to. `None` if they cannot: the service must accept payments without a key, and
    /// know its own URL.
    pub(crate) fn sign_in_site(&self) -> Option<&Site> {
        self.site.as_ref().filter(|_| self.keyless && !self.offers().is_empty())
    }
}

/// Whether the wallet is a contract that accepts the signature (ERC-1271).
async fn accepts(settling: &Settling, sign_in: &SignIn) -> Result<bool, ChainError> {
    let Some(chain) = settling.chains.get(&sign_in.chain_id()) else { return Ok(false) };
    let wallet = sign_in.wallet();
    if chain.reader.code(wallet).await? == AccountCode::Empty {
        return Ok(false);
    }
    for digest in sign_in.digests() {
        if chain.reader.accepts_signature(wallet, digest, sign_in.signature().as_bytes()).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The chains that offers are paid on, the first offer's chain first.
fn chain_ids(offers: &Offers) -> Vec<u64> {
    let mut chain_ids = Vec::new();
    for chain_id in offers.iter().map(|offer| offer.asset.domain.chain_id) {
        if !chain_ids.contains(&chain_id) {
            chain_ids.push(chain_id);
        }
    }
    chain_ids
}
