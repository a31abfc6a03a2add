//! The names of the headers of payments: x402 (versions 1 and 2), MPP, and sign-in of wallets. A response to a request
//! with one of them is private, and a key is read next to them, whether or not payments are taken.

/// The offers of a 402, for x402 version 2.
pub const PAYMENT_REQUIRED_HEADER: &str = "payment-required";
/// A payment of x402 version 2.
pub const PAYMENT_SIGNATURE_HEADER: &str = "payment-signature";
/// The settlement of an x402 payment, version 2.
pub const PAYMENT_RESPONSE_HEADER: &str = "payment-response";
/// A payment of x402 version 1.
pub const X_PAYMENT_HEADER: &str = "x-payment";
/// The settlement of an x402 payment, version 1.
pub const X_PAYMENT_RESPONSE_HEADER: &str = "x-payment-response";
/// A wallet's sign-in: an extension of x402 version 2.
pub const SIGN_IN_HEADER: &str = "sign-in-with-x";
/// Challenges of MPP, in a 402.
pub const CHALLENGE_HEADER: &str = "www-authenticate";
/// A credential of MPP, unless the challenge names another header.
pub const AUTHORIZATION_HEADER: &str = "authorization";
/// A credential of MPP next to an API key, for challenges that name this header.
pub const PAYMENT_AUTHORIZATION_HEADER: &str = "payment-authorization";
/// The methods of payment that a client of MPP has. Each 402 has all challenges anyway, since there is one method; only
/// tools of MCP look for it.
pub const ACCEPT_PAYMENT_HEADER: &str = "accept-payment";
/// The payment with MPP; only in successful responses.
pub const PAYMENT_RECEIPT_HEADER: &str = "payment-receipt";
/// Request headers to allow in CORS, in lower case. Some clients do send the last two.
pub const PAYMENT_REQUEST_HEADERS: [&str; 7] = [
    PAYMENT_SIGNATURE_HEADER,
    X_PAYMENT_HEADER,
    SIGN_IN_HEADER,
    PAYMENT_AUTHORIZATION_HEADER,
    ACCEPT_PAYMENT_HEADER,
    "access-control-expose-headers",
    "payment-retry",
];
/// Response headers to expose in CORS, in lower case.
pub const PAYMENT_RESPONSE_HEADERS: [&str; 5] = [
    PAYMENT_REQUIRED_HEADER,
    PAYMENT_RESPONSE_HEADER,
    X_PAYMENT_RESPONSE_HEADER,
    CHALLENGE_HEADER,
    PAYMENT_RECEIPT_HEADER,
];

/// The text after the scheme `Payment` in a value of `Authorization`; `None` for other schemes.
#[must_use]
pub fn payment_credential(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked("payment".len())?;
    let rest = match rest {
        [] => rest,
        [b' ' | b'\t', rest @ ..] => rest,
        _ => return None,
    };
    scheme.eq_ignore_ascii_case(b"payment").then_some(rest.trim_ascii())
}
