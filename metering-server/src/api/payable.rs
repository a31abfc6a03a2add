//! Charges over the API that can be paid with the request, as those of the gateway can.

use http::{HeaderMap, HeaderValue};
use metering_core::service::{RequestPayment, RequestedResource};
use metering_core::{Credits, Error, Service};

use crate::http::{Problem, Reply, with_headers};

/// A request that is charged, and the payment that came with it.
#[derive(Debug)]
pub(super) struct Payable<'a> {
    service: &'a Service,
    asked: RequestedResource<'a>,
    presented: Option<Box<dyn RequestPayment>>,
}

impl<'a> Payable<'a> {
    /// Reads the payment in a request's headers.
    ///
    /// # Errors
    /// When it cannot be read, or takes none of the offers.
    pub(super) fn read(
        service: &'a Service,
        asked: RequestedResource<'a>,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        match service.offers().read(|name| headers.get_all(name).iter().map(HeaderValue::as_bytes)) {
            Ok(presented) => Ok(Self { service, asked, presented }),
            Err(error) => Err(Self { service, asked, presented: None }.refused(error)),
        }
    }

    /// The payment.
    pub(super) fn payment(&self) -> Option<&dyn RequestPayment> {
        self.presented.as_deref()
    }

    /// The response to a request that was refused, with offers if it can be paid for.
    pub(super) fn refused(self, error: Error) -> Problem {
        let notice = self.service.offers().notice(&error, self.asked, self.presented.as_deref());
        Problem::from(error).with_notice(notice)
    }

    /// The response to a request that was charged, with the receipt of its payment.
    pub(super) fn charged(&self, reply: Reply, balance: Credits) -> Reply {
        let receipt = self.presented.as_ref().and_then(|presented| presented.receipt_of_charge(balance));
        with_headers(reply, receipt.into_iter().collect())
    }
}
