//! A credential: a client's response to a challenge.

use metering_core::access::KeyHash;
use metering_core::chains::WalletSignature;
use metering_core::clock::Timestamp;
use metering_core::shown_fields;
use serde_json::Value;

use crate::offers::{Authorization, Network, Offer, Offers, SignedAuthorization};
use crate::wire::accepted::{Accepted, OfferMismatch};
use crate::wire::fields::{Base64, Fields};
use crate::wire::malformed_payment::MalformedPayment;
use crate::wire::mpp::challenge::{KEY, UNIQUE, canonical, read_opaque};
use crate::wire::mpp::nonce::nonces;
use crate::wire::mpp::realm::Realm;
use crate::wire::mpp::secret::{Bound, ChallengeSecret};
use crate::wire::mpp::{INTENT, METHOD, OWN_HEADER};
use crate::wire::payment_headers::MppSource;

const ADDRESS: &str = "must be an address: 0x and 40 hexadecimal digits";

/// A client's response to a challenge. Do not rely on it before [`Credential::verify`].
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    source: MppSource,
    id: String,
    realm: String,
    request: String,
    accepted: Accepted,
    expires: String,
    expires_at: Timestamp,
    header: Option<String>,
    opaque: String,
    authorization: Authorization,
    signature: WalletSignature,
}

/// A credential for a challenge of this service. Its signature and times are not checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedCredential {
    /// The request of the challenge. This is authentic.
    pub accepted: Accepted,
    /// The signed authorization.
    pub signed: SignedAuthorization,
    /// The id of the challenge, for the [`Receipt`](crate::wire::mpp::Receipt).
    pub challenge_id: String,
    /// When the challenge expires.
    pub expires: Timestamp,
    /// The key that the challenge was issued to, if the request had one.
    pub key: Option<KeyHash>,
}

/// Why a credential is not for a challenge of this service. Nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChallengeFault {
    /// Another service issued the challenge, or it was altered.
    #[error(
        "this service did not issue that challenge, or it was altered; send the request without a payment to get another. \
         Nothing was taken."
    )]
    NotIssued,
    /// It arrived in another header than the challenge names.
    #[error("the challenge asks for the credential in {expected}; send it there. Nothing was taken.")]
    Place {
        /// The header that it belongs in.
        expected: &'static str,
    },
    /// The signed authorization pays another amount or recipient.
    #[error(
        "payload.value and payload.to must be the amount and the recipient of the challenge; sign it again. Nothing was taken."
    )]
    Terms,
    /// The challenge was issued for another key, or for a request without one.
    #[error(
        "the challenge was issued for a request with another API key, or without one; send the request without a payment \
         to get another. Nothing was taken."
    )]
    Key,
    /// The signed message is not bound to the challenge.
    #[error(
        "payload.nonce must be the Keccak-256 of the challenge's id and realm; sign it again with that nonce. Nothing was \
         taken."
    )]
    Nonce,
    /// The challenge has expired.
    #[error(
        "the challenge expired at {expires}; send the request without a payment to get another. Nothing was taken."
    )]
    Expired {
        /// When.
        expires: Timestamp,
    },
}

// Leaves out the signature, because anyone who has it can execute the authorization.
shown_fields!(Credential: source, id, accepted, authorization);

impl Credential {
    /// Reads a credential: base64url of JSON, after the scheme `Payment`.
    ///
    /// # Errors
    /// When it cannot be read. Names the wrong field.
    pub fn parse(source: MppSource, text: &str) -> Result<Self, MalformedPayment> {
        Self::read(source, &Base64::Url.decode_json(source.name(), text)?)
    }

    /// Reads the value of [`MPP_CREDENTIAL_META`](crate::wire::mcp::MPP_CREDENTIAL_META) in a call of an MCP tool.
    ///
    /// # Errors
    /// When it cannot be read. Names the wrong field.
    pub fn from_value(value: &Value) -> Result<Self, MalformedPayment> {
        Self::read(MppSource::Mcp, value)
    }

    fn read(source: MppSource, value: &Value) -> Result<Self, MalformedPayment> {
        let what = source.name();
        let root = Fields::of(what, value)?;
        let challenge = root.object("challenge")?;
        challenge.exactly("method", METHOD, "must be \"evm\", the only method on offer")?;
        challenge.exactly("intent", INTENT, "must be \"charge\", the only intent on offer")?;
        let request = encoded(&challenge, "request")?;
        let decoded = Base64::Url.decode_json(what, &request);
        let decoded =
            decoded.map_err(|_| challenge.fault("request", "must be the request of the challenge, unchanged"))?;
        let payload = root.object("payload")?;
        payload.exactly("type", "authorization", "must be \"authorization\", the only type on offer")?;
        Ok(Self {
            source,
            id: challenge.text("id")?.to_owned(),
            realm: challenge.text("realm")?.to_owned(),
            accepted: read_request(what, &decoded)?,
            request,
            expires: challenge.text("expires")?.to_owned(),
            expires_at: challenge.parse("expires", "must be the time in the challenge, unchanged")?,
            header: challenge.optional_text("header")?.map(str::to_owned),
            opaque: encoded(&challenge, "opaque")?,
            authorization: payload.authorization()?,
            signature: payload.signature()?,
        })
    }

    /// The id of its challenge.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The signed authorization.
    #[must_use]
    pub fn signed(&self) -> SignedAuthorization {
        SignedAuthorization {
            chain_id: self.accepted.network.0,
            token: self.accepted.asset,
            authorization: self.authorization,
            signature: self.signature.clone(),
        }
    }

    /// Checks that this service issued the challenge, that the credential came in the header that the challenge names,
    /// and that its nonce is bound to it.
    ///
    /// Afterwards, look for an authorization that was accepted before, and only then check the times, with
    /// [`VerifiedCredential::check_expiry`] and [`Authorization::check`]: a client may send a credential again after it
    /// expired.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn verify(self, secret: &ChallengeSecret, realm: &Realm) -> Result<VerifiedCredential, ChallengeFault> {
        // Bound fields must not have the bar that separates them. An alphabet, a time and fixed texts have none.
        let bound = Bound {
            realm: realm.as_str(),
            request: &self.request,
            expires: &self.expires,
            header: self.header.as_deref(),
            opaque: &self.opaque,
        };
        let own_header = match self.header.as_deref() {
            None => false,
            Some(OWN_HEADER) => true,
            Some(_) => return Err(ChallengeFault::NotIssued),
        };
        // Older clients do not implement the field, leave it out, and send the credential in `Authorization`.
        let with_header = Bound { header: bound.header.or(Some(OWN_HEADER)), ..bound };
        let is_issued = secret.issued(&self.id, bound) || secret.issued(&self.id, with_header);
        if self.realm != realm.as_str() || !is_issued {
            return Err(ChallengeFault::NotIssued);
        }
        let key = issued_to(secret, &self.opaque).ok_or(ChallengeFault::NotIssued)?;
        match (self.source, own_header) {
            (MppSource::Authorization | MppSource::Mcp, false) | (MppSource::PaymentAuthorization, true) => {}
            (_, true) => return Err(ChallengeFault::Place { expected: OWN_HEADER }),
            (_, false) => return Err(ChallengeFault::Place { expected: MppSource::Authorization.name() }),
        }
        let (accepted, signed) = (&self.accepted, &self.authorization);
        if (accepted.amount, accepted.pay_to) != (signed.value, signed.to) {
            return Err(ChallengeFault::Terms);
        }
        if !nonces(&self.id, realm).contains(&self.authorization.nonce) {
            return Err(ChallengeFault::Nonce);
        }
        let signed = self.signed();
        let Self { accepted, id: challenge_id, expires_at: expires, .. } = self;
        Ok(VerifiedCredential { accepted, signed, challenge_id, expires, key })
    }
}

impl VerifiedCredential {
    /// The offer that the challenge was made for, if it is still on offer.
    ///
    /// # Errors
    /// When it is not.
    pub fn offer<'o>(&self, offers: &'o Offers) -> Result<&'o Offer, OfferMismatch> {
        self.accepted.offer(offers)
    }

    /// Checks that the credential arrived before the challenge expired.
    ///
    /// # Errors
    /// When it did not.
    pub fn check_expiry(&self, arrived_at: Timestamp) -> Result<(), ChallengeFault> {
        let expires = self.expires;
        if arrived_at < expires { Ok(()) } else { Err(ChallengeFault::Expired { expires }) }
    }
}

/// The key that a challenge was issued to. `None` if that cannot be read.
fn issued_to(secret: &ChallengeSecret, opaque: &str) -> Option<Option<KeyHash>> {
    let opaque = read_opaque(opaque)?;
    let Some(key) = opaque.get(KEY) else { return Some(None) };
    let hidden: [u8; 32] = hex::decode(key.as_str()?).ok()?.try_into().ok()?;
    let unique = opaque.get(UNIQUE)?.as_str()?;
    Some(Some(KeyHash::from_bytes(secret.mask(unique, &hidden))))
}

/// A field that is base64url of JSON in headers, and may be the JSON itself in messages of MCP.
fn encoded(challenge: &Fields<'_>, name: &'static str) -> Result<String, MalformedPayment> {
    match challenge.get(name) {
        Some(native @ Value::Object(_)) => Ok(canonical(native)),
        _ => challenge.text(name).map(str::to_owned),
    }
}

fn read_request(what: &'static str, request: &Value) -> Result<Accepted, MalformedPayment> {
    let request = Fields::of(what, request)?;
    let details = request.object("methodDetails")?;
    let chain_id = details.get("chainId").and_then(Value::as_u64);
    let chain_id = chain_id.ok_or_else(|| details.fault("chainId", "must be the number of a chain"))?;
    Ok(Accepted {
        network: Network(chain_id),
        asset: request.parse("currency", ADDRESS)?,
        amount: request.parse("amount", "must be a whole number of the token's smallest unit, in decimal digits")?,
        pay_to: request.parse("recipient", ADDRESS)?,
        domain_name: None,
        domain_version: None,
    })
}

#[cfg(test)]
mod tests;
