//! Charges over the API that can be paid with the request, as those of the gateway can.

use http::{HeaderMap, HeaderValue};
use metering_core::service::{ChallengeClient, RequestPayment, RequestedResource};
use metering_core::{ApiKey, Credits, Error, Service};

use crate::http::{Problem, Reply, with_headers};

/// A request that is charged, and the payment that came with it.
#[derive(Debug)]
pub(super) struct Payable<'a> {
    service: &'a Service,
    asked: RequestedResource<'a>,
    client: ChallengeClient,
    presented: Option<Box<dyn RequestPayment>>,
}

impl<'a> Payable<'a> {
    /// Reads the payment in the headers of a request with this key.
    ///
    /// # Errors
    /// When it cannot be read, or takes none of the offers.
    pub(super) fn read(
        service: &'a Service,
        asked: RequestedResource<'a>,
        key: Option<&ApiKey>,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let values = |name: &'static str| headers.get_all(name).iter().map(HeaderValue::as_bytes);
        let client = ChallengeClient::read(values, key);
        match service.offers().read(values) {
            Ok(presented) => Ok(Self { service, asked, client, presented }),
            Err(error) => Err(Self { service, asked, client, presented: None }.refused(error)),
        }
    }

    /// The payment.
    pub(super) fn payment(&self) -> Option<&dyn RequestPayment> {
        self.presented.as_deref()
    }

    /// The response to a request that was refused, with offers if it can be paid for.
    pub(super) fn refused(self, error: Error) -> Problem {
        let (offers, presented) = (self.service.offers(), self.presented.as_deref());
        let mut notice = offers.notice(&error, self.asked, presented);
        notice.headers.extend(offers.challenges(&error, self.client, presented));
        Problem::from(error).with_notice(notice)
    }

    /// The response to a request that was charged, with the receipt of its payment.
    pub(super) fn charged(&self, reply: Reply, balance: Credits) -> Reply {
        let receipt = self.presented.as_ref().and_then(|presented| presented.receipt_of_charge(balance));
        with_headers(reply, receipt.into_iter().collect())
    }
}
