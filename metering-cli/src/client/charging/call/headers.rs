//! Headers that the user adds to a call.

use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, header};
use metering_client::{BodyStream, Transport, Unreachable};
use metering_core::wire::{PREFER_HEADER, RECEIPT_HEADER};

/// Headers that the program itself sets: message framing, credentials and payments.
const RESERVED: [&str; 7] =
    ["connection", "content-length", "host", "payment-signature", "te", "transfer-encoding", "x-payment"];

/// A header from the command line. Its value may be a secret.
#[derive(Clone)]
pub(super) struct ExtraHeader {
    name: HeaderName,
    value: HeaderValue,
}

impl std::fmt::Debug for ExtraHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExtraHeader").field("name", &self.name).finish_non_exhaustive()
    }
}

impl FromStr for ExtraHeader {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "must be NAME: VALUE";
        let (name, value) = text.split_once(':').ok_or(FORM)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| FORM)?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| FORM)?;
        if RESERVED.contains(&name.as_str()) {
            return Err("is a header that the program itself sets");
        }
        value.set_sensitive(true);
        Ok(Self { name, value })
    }
}

impl ExtraHeader {
    /// Asks for a signed receipt.
    pub(super) fn receipt_preference() -> Self {
        Self { name: HeaderName::from_static(PREFER_HEADER), value: HeaderValue::from_static(RECEIPT_HEADER) }
    }

    pub(super) fn is_content_type(&self) -> bool {
        self.name == header::CONTENT_TYPE
    }
}

/// Adds headers to every request. They replace those that the request has.
#[derive(Debug)]
pub(super) struct ExtraHeaders {
    inner: Arc<dyn Transport>,
    headers: Vec<ExtraHeader>,
}

impl ExtraHeaders {
    /// The transport, with these headers.
    pub(super) fn over(inner: Arc<dyn Transport>, headers: &[ExtraHeader]) -> Arc<dyn Transport> {
        if headers.is_empty() { inner } else { Arc::new(Self { inner, headers: headers.to_vec() }) }
    }
}

#[async_trait]
impl Transport for ExtraHeaders {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<BodyStream>, Unreachable> {
        let headers = request.headers_mut();
        for ExtraHeader { name, .. } in &self.headers {
            headers.remove(name);
        }
        for ExtraHeader { name, value } in &self.headers {
            headers.append(name, value.clone());
        }
        self.inner.send(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_those_of_payments_refused() {
        let read: ExtraHeader = "Accept:  text/csv ".parse().unwrap();
        assert_eq!((read.name.as_str(), read.value.as_bytes()), ("accept", &b"text/csv"[..]));
        assert!(!read.is_content_type() && "content-type: x".parse::<ExtraHeader>().unwrap().is_content_type());
        assert!(!format!("{:?}", "Cookie: secret".parse::<ExtraHeader>().unwrap()).contains("secret"));
        for bad in ["", "accept", ": x", "a b: c", "a: b\nc", "Host: x", "X-PAYMENT: x", "payment-signature: x"] {
            assert!(bad.parse::<ExtraHeader>().is_err(), "{bad:?}");
        }
    }
}
