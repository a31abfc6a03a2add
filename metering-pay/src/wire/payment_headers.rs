//! The headers of payments: x402 (versions 1 and 2), MPP, and sign-in of wallets.

use std::fmt;

use metering_core::wire::{
    AUTHORIZATION_HEADER, PAYMENT_AUTHORIZATION_HEADER, PAYMENT_SIGNATURE_HEADER, SIGN_IN_HEADER, X_PAYMENT_HEADER,
    payment_credential,
};

use crate::wire::malformed_payment::MalformedPayment;

/// The payment in the headers of a request, not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SentPayment<'h> {
    /// x402 version 2: [`PaymentPayload::parse`](crate::wire::x402::PaymentPayload::parse).
    X402(&'h str),
    /// x402 version 1: [`PaymentPayloadV1::parse`](crate::wire::x402::PaymentPayloadV1::parse).
    X402V1(&'h str),
    /// MPP, after the scheme: [`Credential::parse`](crate::wire::mpp::Credential::parse).
    Mpp(MppSource, &'h str),
}

impl fmt::Debug for SentPayment<'_> {
    /// Leaves out the payment, which anyone could execute.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X402(_) => "X402(…)",
            Self::X402V1(_) => "X402V1(…)",
            Self::Mpp(source, _) => source.name(),
        })
    }
}

/// Where a credential of MPP was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MppSource {
    /// `Authorization: Payment`.
    Authorization,
    /// `Payment-Authorization: Payment`.
    PaymentAuthorization,
    /// `_meta` of a call of an MCP tool.
    Mcp,
}

impl MppSource {
    /// Its name in errors.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authorization => "Authorization: Payment",
            Self::PaymentAuthorization => "Payment-Authorization",
            Self::Mcp => "_meta[\"org.paymentauth/credential\"]",
        }
    }

    /// Whether this is the name of one of them.
    pub(crate) fn is_name(name: &str) -> bool {
        [Self::Authorization, Self::PaymentAuthorization, Self::Mcp].iter().any(|source| source.name() == name)
    }
}

/// The payment data in the headers of a request.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct PaymentHeaders<'h> {
    /// The payment.
    pub payment: Option<SentPayment<'h>>,
    /// The sign-in of a wallet: [`SignIn::parse`](crate::wire::x402::SignIn::parse).
    pub sign_in: Option<&'h str>,
}

impl fmt::Debug for PaymentHeaders<'_> {
    /// Leaves out the sign-in, with which anyone could sign in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PaymentHeaders");
        debug.field("payment", &self.payment).field("sign_in", &self.sign_in.map(|_| "…")).finish()
    }
}

impl<'h> PaymentHeaders<'h> {
    /// Reads the headers. `values` takes a header name in lower case and returns the values of all its lines.
    ///
    /// ```
    /// use metering_pay::wire::{PaymentHeaders, SentPayment};
    ///
    /// let mut headers = http::HeaderMap::new();
    /// headers.insert("authorization", "Bearer sk_live_1".parse()?);
    /// headers.insert("payment-signature", "eyJ4NDAy".parse()?);
    /// let read = PaymentHeaders::read(|name| headers.get_all(name).iter().map(|value| value.as_bytes()))?;
    /// assert_eq!(read.payment, Some(SentPayment::X402("eyJ4NDAy")));
    ///
    /// headers.insert("x-payment", "eyJ4NDAy".parse()?);
    /// let error = PaymentHeaders::read(|name| headers.get_all(name).iter().map(|value| value.as_bytes())).unwrap_err();
    /// assert!(error.to_string().contains("send only one"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is more than one payment, more than one sign-in, or one that is not text.
    pub fn read<V>(values: impl Fn(&'static str) -> V) -> Result<Self, MalformedPayment>
    where
        V: IntoIterator<Item = &'h [u8]>,
    {
        let mut payments = Vec::new();
        for value in values(PAYMENT_SIGNATURE_HEADER) {
            payments.push(("PAYMENT-SIGNATURE", SentPayment::X402(text("PAYMENT-SIGNATURE", value)?)));
        }
        for value in values(X_PAYMENT_HEADER) {
            payments.push(("X-PAYMENT", SentPayment::X402V1(text("X-PAYMENT", value)?)));
        }
        for value in values(PAYMENT_AUTHORIZATION_HEADER) {
            let source = MppSource::PaymentAuthorization;
            let credential = payment_credential(value).ok_or_else(|| {
                let problem = "must be 'Payment', a space and the credential";
                MalformedPayment::Field { what: source.name(), field: "scheme".to_owned(), problem }
            })?;
            payments.push((source.name(), SentPayment::Mpp(source, text(source.name(), credential)?)));
        }
        for credential in values(AUTHORIZATION_HEADER).into_iter().filter_map(payment_credential) {
            let source = MppSource::Authorization;
            payments.push((source.name(), SentPayment::Mpp(source, text(source.name(), credential)?)));
        }
        if let [(first, _), (second, _), ..] = *payments {
            return Err(MalformedPayment::Several { first, second });
        }
        let mut sign_ins = values(SIGN_IN_HEADER).into_iter();
        let sign_in = match (sign_ins.next(), sign_ins.next()) {
            (Some(value), None) => Some(text("SIGN-IN-WITH-X", value)?),
            (None, _) => None,
            _ => return Err(MalformedPayment::Several { first: "SIGN-IN-WITH-X", second: "SIGN-IN-WITH-X" }),
        };
        Ok(Self { payment: payments.pop().map(|(_, payment)| payment), sign_in })
    }
}

fn text<'h>(what: &'static str, value: &'h [u8]) -> Result<&'h str, MalformedPayment> {
    let problem = || MalformedPayment::Encoding { what, encoding: "base64" };
    std::str::from_utf8(value).map_err(|_| problem())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read<'l>(lines: &'l [(&'l str, &'l [u8])]) -> Result<PaymentHeaders<'l>, MalformedPayment> {
        PaymentHeaders::read(|name| lines.iter().filter(move |line| line.0 == name).map(|line| line.1))
    }

    #[test]
    fn one_payment_is_found_wherever_it_is() {
        type Row<'l> = (&'l [(&'l str, &'l [u8])], Option<SentPayment<'l>>);
        let table: [Row<'_>; 9] = [
            (&[], None),
            (&[("authorization", b"Bearer sk_live_x")], None),
            (&[("authorization", b"Payments abc")], None),
            (&[("payment-signature", b"abc")], Some(SentPayment::X402("abc"))),
            (&[("x-payment", b"abc")], Some(SentPayment::X402V1("abc"))),
            (&[("authorization", b"pAyMent  abc ")], Some(SentPayment::Mpp(MppSource::Authorization, "abc"))),
            (&[("authorization", b"Payment")], Some(SentPayment::Mpp(MppSource::Authorization, ""))),
            (
                &[("authorization", b"Bearer k"), ("payment-authorization", b"Payment abc")],
                Some(SentPayment::Mpp(MppSource::PaymentAuthorization, "abc")),
            ),
            (&[("authorization", b"Bearer k"), ("payment-signature", b"abc")], Some(SentPayment::X402("abc"))),
        ];
        for (lines, payment) in table {
            assert_eq!(read(lines).unwrap().payment, payment, "{lines:?}");
        }
    }

    #[test]
    fn two_payments_are_refused_in_every_combination() {
        let all: [(&str, &[u8]); 4] = [
            ("payment-signature", b"a"),
            ("x-payment", b"a"),
            ("payment-authorization", b"Payment a"),
            ("authorization", b"Payment a"),
        ];
        for first in all {
            for second in all {
                let lines = [first, second];
                let refused = read(&lines);
                assert!(matches!(refused, Err(MalformedPayment::Several { .. })), "{first:?} {second:?}: {refused:?}");
            }
        }
    }

    #[test]
    fn other_headers_are_read_beside_the_payment() {
        let headers = [("sign-in-with-x", &b"s"[..]), ("x-payment", b"p")];
        assert_eq!(read(&headers).unwrap().sign_in, Some("s"));
        assert!(read(&[("sign-in-with-x", b"s"), ("sign-in-with-x", b"s")]).is_err());
        assert!(read(&[("payment-authorization", b"Bearer s")]).is_err());
        assert!(read(&[("payment-signature", b"\xff")]).is_err());
        let printed =
            format!("{:?}", read(&[("payment-signature", b"secret"), ("sign-in-with-x", b"a secret")]).unwrap());
        assert!(!printed.contains("secret"), "{printed}");
    }

    proptest! {
        #[test]
        fn no_headers_make_it_panic(
            lines in proptest::collection::vec((0_usize..6, "([Pp]ayment ?)?\\PC{0,20}"), 0..4)
        ) {
            let names = [
                PAYMENT_SIGNATURE_HEADER, X_PAYMENT_HEADER, PAYMENT_AUTHORIZATION_HEADER, AUTHORIZATION_HEADER,
                SIGN_IN_HEADER, "x-api-key",
            ];
            let lines: Vec<_> = lines.iter().map(|(name, value)| (names[*name], value.as_bytes())).collect();
            let payments = lines.iter().filter(|(name, value)| match *name {
                AUTHORIZATION_HEADER => payment_credential(value).is_some(),
                name => names[..3].contains(&name),
            });
            let payments = payments.count();
            if let Ok(headers) = read(&lines) {
                prop_assert_eq!(usize::from(headers.payment.is_some()), payments);
            }
        }
    }
}
