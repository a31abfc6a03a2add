//! MPP challenges in refusals, and the credentials that clients send for them.
//!
//! No challenge is stored.

use std::time::Duration;

use metering_core::Timestamp;
use metering_core::access::KeyHash;
use metering_core::chains::TxRef;
use metering_core::charging::Fingerprint;
use metering_core::service::ChallengeClient;
use metering_core::wire::{CHALLENGE_HEADER, PAYMENT_RECEIPT_HEADER, PayableMembers};

use crate::offers::{Offers, PayRefusal, SignedAuthorization};
use crate::wire::mpp::{Challenge, ChallengeFault, ChallengeSecret, ChallengeTerms, Credential, Realm, Receipt};
use crate::wire::{MalformedPayment, MppSource};

/// How long a challenge is valid.
const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// The most bytes of challenges in one response. Clients accept 16 KiB of headers, and the offers of x402 are there
/// too.
const MAX_BYTES: usize = 6_000;

/// The secret and terms of challenges.
#[derive(Debug, Clone)]
pub struct ChallengeSettings {
    /// The secret that their ids are made with. All nodes of a service need the same one.
    pub secret: ChallengeSecret,
    /// Whom they are from: the service's host name.
    pub realm: Realm,
}

/// The clients that get challenges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Challenged {
    key: Option<KeyHash>,
    key_in_authorization: bool,
}

/// The challenge that a payment is for: one of this service, or none that can be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChallengeCredential {
    /// The id of the challenge, as the client sent it.
    id: String,
    pub(crate) issued: Result<Issued, ChallengeFault>,
}

/// A challenge that this service issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Issued {
    pub(crate) key: Option<KeyHash>,
    expires: Timestamp,
}

impl Challenged {
    /// The client that sent a request, with its credential. The credential may have replaced its key: the client gets
    /// challenges for the same key.
    pub(crate) fn new(client: ChallengeClient, answer: Option<&ChallengeCredential>) -> Self {
        let ChallengeClient { key, key_in_authorization } = client;
        let issued_to = answer.and_then(|answer| answer.issued.ok()).and_then(|issued| issued.key);
        Self { key: key.or(issued_to), key_in_authorization }
    }
}

impl ChallengeSettings {
    /// Challenges to pay one of these offers, as header lines, in this order. `unique` is text that no other challenge
    /// has.
    pub(crate) fn lines(
        &self,
        offers: &Offers,
        client: Challenged,
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

    /// The bytes that a credential signs, and its challenge. A fault in the challenge is not an error yet: the
    /// authorization may be known already.
    pub(crate) fn read(
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

/// Adds the members of a problem (RFC 9457) with one of the draft's types to those of a 402 with challenges.
pub(crate) fn with_problem(members: PayableMembers, refusal: Option<&PayRefusal>, detail: &str) -> PayableMembers {
    let (name, title) = match refusal {
        None => ("payment-required", "Payment Required"),
        Some(PayRefusal::Credential(_)) => ("malformed-credential", "Malformed Credential"),
        Some(PayRefusal::Challenge(_)) => ("invalid-challenge", "Invalid Challenge"),
        Some(PayRefusal::TooLittle { .. }) => ("payment-insufficient", "Payment Insufficient"),
        Some(_) => ("verification-failed", "Verification Failed"),
    };
    let members = members.with("type", &format!("https://paymentauth.org/problems/{name}"));
    let members = members.and_then(|members| members.with("title", &title)?.with("status", &402));
    members.and_then(|members| members.with("detail", &detail)).expect("texts and numbers can be written as JSON")
}

impl ChallengeCredential {
    /// The receipt of the payment with this credential.
    pub(crate) fn receipt(
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
    pub(crate) fn check_expiry(&self, now: Timestamp) -> Result<(), PayRefusal> {
        let Issued { expires, .. } = self.issued.map_err(PayRefusal::Challenge)?;
        if now < expires { Ok(()) } else { Err(PayRefusal::Challenge(ChallengeFault::Expired { expires })) }
    }

    /// The fingerprint of the request with this credential. The signed authorization becomes public on its chain, but
    /// the challenge does not: so others cannot reuse the authorization for the same request in another protocol.
    pub(crate) fn bind(&self, request: Fingerprint) -> Fingerprint {
        request.with_body(self.id.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use metering_core::Credits;
    use serde_json::json;

    use super::*;

    #[test]
    fn problems_have_the_types_of_the_draft() {
        let (credits, missing) = (Credits::ZERO, Credits::BASE_CALL);
        let expired = ChallengeFault::Expired { expires: Timestamp::from_unix_millis(0) };
        let malformed = MalformedPayment::Several { first: "a", second: "b" };
        // refusal, type
        let table = [
            (None, "payment-required"),
            (Some(PayRefusal::Credential(malformed)), "malformed-credential"),
            (Some(PayRefusal::Challenge(expired)), "invalid-challenge"),
            (Some(PayRefusal::TooLittle { credits, missing }), "payment-insufficient"),
            (Some(PayRefusal::NotOffered), "verification-failed"),
        ];
        for (refusal, name) in table {
            let members = with_problem(PayableMembers::default(), refusal.as_ref(), "Pay.");
            let members = serde_json::to_value(members).unwrap();
            assert_eq!(members["type"], format!("https://paymentauth.org/problems/{name}"));
            assert_eq!((&members["status"], &members["detail"]), (&json!(402), &json!("Pay.")));
        }
    }
}
