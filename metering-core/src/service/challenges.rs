//! MPP challenges in refusals, and the credentials that clients send for them.
//!
//! Nothing is stored for a challenge.

use std::time::Duration;

use crate::access::key::{ApiKey, KeyHash};
use crate::chains::transaction::TxRef;
use crate::charging::delivery::Fingerprint;
use crate::clock::Timestamp;
use crate::offers::{Offers, PayRefusal, SignedAuthorization};
use crate::wire::mpp::{
    Challenge, ChallengeFault, ChallengeSecret, ChallengeTerms, Credential, Realm, Receipt, accepts_evm_charge,
};
use crate::wire::{
    ACCEPT_PAYMENT_HEADER, AUTHORIZATION_HEADER, CHALLENGE_HEADER, MalformedPayment, MppSource, PAYMENT_RECEIPT_HEADER,
    payment_credential,
};

/// How long a challenge is valid.
const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// The most bytes of challenges in one response. Clients accept 16 KiB of headers, and the offers of x402 are there
/// too.
const MAX_BYTES: usize = 6_000;

/// What challenges are made with.
#[derive(Debug, Clone)]
pub struct ChallengeSettings {
    /// The secret that their ids are made with. All nodes of a service need the same one.
    pub secret: ChallengeSecret,
    /// Whom they are from: the service's host name.
    pub realm: Realm,
}

/// What a request says about challenges.
#[derive(Debug, Clone, Copy)]
pub struct ChallengeClient {
    /// Whether its client supports them.
    accepts: bool,
    key: Option<KeyHash>,
    key_in_authorization: bool,
}

/// The challenge that a payment is for: one of this service, or none that can be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeCredential {
    /// The id of the challenge, as the client sent it.
    id: String,
    pub(super) issued: Result<Issued, ChallengeFault>,
}

/// A challenge that this service issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Issued {
    pub(super) key: Option<KeyHash>,
    expires: Timestamp,
}

impl ChallengeClient {
    /// Reads a request's headers. `values` takes a header name in lower case and returns the values of all its lines;
    /// `key` is the key that was found there.
    #[must_use]
    pub fn read<'h, V>(values: impl Fn(&'static str) -> V, key: Option<&ApiKey>) -> Self
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        let accepted = values(ACCEPT_PAYMENT_HEADER).into_iter().next();
        let accepts = accepted.and_then(|value| std::str::from_utf8(value).ok()).is_some_and(accepts_evm_charge);
        let has_other = values(AUTHORIZATION_HEADER).into_iter().any(|value| payment_credential(value).is_none());
        Self { accepts, key: key.map(ApiKey::hash), key_in_authorization: key.is_some() && has_other }
    }

    /// The client that sent this credential, which may have replaced its key: it gets challenges for the same key.
    pub(super) fn answering(self, answer: &ChallengeCredential) -> Self {
        let issued_to = answer.issued.ok().and_then(|issued| issued.key);
        Self { accepts: true, key: self.key.or(issued_to), ..self }
    }

    /// Whether it supports challenges.
    pub(super) const fn accepts(&self) -> bool {
        self.accepts
    }
}

impl ChallengeSettings {
    /// Challenges to pay one of these offers, as header lines, in this order. `unique` is text that no other challenge
    /// has.
    pub(super) fn lines(
        &self,
        offers: &Offers,
        client: ChallengeClient,
        unique: &str,
        now: Timestamp,
    ) -> Vec<(&'static str, String)> {
        let terms = ChallengeTerms {
            key: client.key.as_ref(),
            unique,
            expires: now.saturating_add(LIFETIME),
            own_header: client.key_in_authorization,
        };
        let challenge = |offer| Challenge::new(&self.secret, &self.realm, offer, terms).header();
        let fits = |sent: &mut usize, header: String| {
            *sent += header.len();
            (*sent <= MAX_BYTES).then_some((CHALLENGE_HEADER, header))
        };
        offers.iter().map(challenge).scan(0, fits).collect()
    }

    /// What a credential signs, and its challenge. A fault in the challenge is not an error yet: the authorization may
    /// be known already.
    pub(super) fn read(
        &self,
        source: MppSource,
        text: &str,
    ) -> Result<(SignedAuthorization, ChallengeCredential), MalformedPayment> {
        let credential = Credential::parse(source, text)?;
        let (id, signed) = (credential.id().to_owned(), credential.signed());
        let issued = credential.verify(&self.secret, &self.realm);
        let issued = issued.map(|verified| Issued { key: verified.key, expires: verified.expires });
        Ok((signed, ChallengeCredential { id, issued }))
    }
}

impl ChallengeCredential {
    /// The receipt of the payment with this credential.
    pub(super) fn receipt(
        &self,
        signed: &SignedAuthorization,
        tx: TxRef,
        received_at: Timestamp,
    ) -> (&'static str, String) {
        let SignedAuthorization { chain_id, .. } = *signed;
        let receipt = Receipt { transaction: tx.hash, chain_id, challenge_id: self.id.clone(), at: received_at };
        (PAYMENT_RECEIPT_HEADER, receipt.header())
    }

    /// Checks that a challenge was issued and has not expired.
    pub(super) fn check_expiry(&self, now: Timestamp) -> Result<(), PayRefusal> {
        let Issued { expires, .. } = self.issued.map_err(PayRefusal::Challenge)?;
        if now < expires { Ok(()) } else { Err(PayRefusal::Challenge(ChallengeFault::Expired { expires })) }
    }

    /// The fingerprint of the request with this credential. The signed authorization becomes public on its chain, but
    /// the challenge does not: so others cannot reuse the authorization for the same request in another protocol.
    pub(super) fn bind(&self, request: Fingerprint) -> Fingerprint {
        request.with_body(self.id.as_bytes())
    }
}
