//! The signatures of Stripe's events: the header `Stripe-Signature`, with HMAC-SHA256.

use hmac::{Hmac, KeyInit, Mac};
use metering_core::Timestamp;
use sha2::Sha256;

/// Where the signatures are.
pub(crate) const SIGNATURE_HEADER: &str = "stripe-signature";
/// How far the time of a signature may be from now, in seconds; as Stripe's libraries have it.
const TOLERANCE_SECONDS: u64 = 300;

/// Why an event is not from Stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureFault {
    #[error("no Stripe-Signature with a time and a signature of version v1")]
    Missing,
    #[error("none of the signatures is by the webhook secret")]
    Wrong,
    #[error("the signature is older or newer than five minutes")]
    Outdated,
}

/// Checks that one of `secrets` signed a body a short while ago. The header may have several signatures, while a secret is
/// rolled at Stripe.
pub(super) fn verify(secrets: &[&str], header: &str, body: &[u8], now: Timestamp) -> Result<(), SignatureFault> {
    let items = || header.split(',').filter_map(|item| item.trim().split_once('='));
    let time = items().find(|(name, _)| *name == "t").map(|(_, time)| time).ok_or(SignatureFault::Missing)?;
    let signed_at: i64 = time.parse().map_err(|_| SignatureFault::Missing)?;
    let signatures: Vec<Vec<u8>> =
        items().filter(|(name, _)| *name == "v1").filter_map(|(_, text)| hex::decode(text).ok()).collect();
    if signatures.is_empty() {
        return Err(SignatureFault::Missing);
    }
    let is_by = |secret: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length");
        mac.update(time.as_bytes());
        mac.update(b".");
        mac.update(body);
        // The body is hashed once, no matter how many signatures an unauthenticated client sends. They are compared in
        // constant time.
        signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    };
    if !secrets.iter().any(|secret| is_by(secret)) {
        return Err(SignatureFault::Wrong);
    }
    if now.unix_seconds().abs_diff(signed_at) > TOLERANCE_SECONDS {
        return Err(SignatureFault::Outdated);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED_AT: i64 = 1_795_262_400;
    const BODY: &[u8] = br#"{"id": "evt_1", "object": "event"}"#;

    fn sign(secret: &str, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{SIGNED_AT}.").as_bytes());
        mac.update(body);
        hex::encode(mac.finalize().into_bytes())
    }

    fn check(secrets: &[&str], header: &str, after_seconds: i64) -> Result<(), SignatureFault> {
        verify(secrets, header, BODY, Timestamp::from_unix_millis((SIGNED_AT + after_seconds) * 1_000))
    }

    /// Made by `stripe.webhooks.generateTestHeaderString` of Stripe's library for Node.js, version 23.1.0.
    #[test]
    fn signature_of_a_known_event() {
        let known = "9d2533814d1c633370e3614bf01f12472db5a550d7d5ab010dfa919e92fe957c";
        assert_eq!(sign("whsec_new", BODY), known);
        assert_eq!(check(&["whsec_new"], &format!("t={SIGNED_AT},v1={known}"), 0), Ok(()));
    }

    /// To hash the body for each of them would take minutes.
    #[test]
    fn many_signatures_cost_no_more_than_one() {
        let body = vec![b'x'; 1 << 20];
        let header = format!("t={SIGNED_AT},{}v1={}", "v1=00,".repeat(5_000), sign("whsec_new", &body));
        let now = Timestamp::from_unix_millis(SIGNED_AT * 1_000);
        assert_eq!(verify(&["whsec_new"], &header, &body, now), Ok(()));
    }

    #[test]
    fn a_signature_is_by_a_secret_and_recent() {
        use SignatureFault::{Missing, Outdated, Wrong};
        let (new, old, other) = (sign("whsec_new", BODY), sign("whsec_old", BODY), sign("whsec_new", b"{}"));
        let header = |signatures: &str| format!("t={SIGNED_AT},{signatures}");
        let [by_new, by_old] = [&new, &old].map(|signature| header(&format!("v1={signature}")));
        let both = header(&format!("v1={old},v1={new},v0=00"));
        /// Secrets, header, seconds after it was signed, outcome.
        type Row<'t> = (&'t [&'t str], &'t str, i64, Result<(), SignatureFault>);
        let table: [Row<'_>; 13] = [
            (&["whsec_new"], &by_new, 0, Ok(())),
            (&["whsec_new"], &by_new, 300, Ok(())),
            (&["whsec_new"], &by_new, -300, Ok(())),
            (&["whsec_new"], &by_new, 301, Err(Outdated)),
            (&["whsec_new"], &by_new, -301, Err(Outdated)),
            // Stripe signs with both while a secret is rolled, and so may we have both.
            (&["whsec_new"], &both, 0, Ok(())),
            (&["whsec_new", "whsec_old"], &by_old, 0, Ok(())),
            (&["whsec_new"], &by_old, 0, Err(Wrong)),
            (&["whsec_new"], &header(&format!("v1={other}")), 0, Err(Wrong)),
            (&["whsec_new"], &header(&format!("v0={new}")), 0, Err(Missing)),
            (&["whsec_new"], &header("v1=not hex"), 0, Err(Missing)),
            (&["whsec_new"], &format!("v1={new}"), 0, Err(Missing)),
            (&["whsec_new"], "", 0, Err(Missing)),
        ];
        for (secrets, header, after_seconds, outcome) in table {
            assert_eq!(check(secrets, header, after_seconds), outcome, "{secrets:?} {header} {after_seconds}");
        }
    }
}
