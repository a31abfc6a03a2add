//! [`MeteredHeaders`]: the headers that report a charge. The amounts stay numbers until the headers are set, so only
//! headers that are sent are formatted.

use std::fmt::Display;

use super::headers::{
    BALANCE_HEADER, CHARGED_HEADER, HELD_HEADER, PRICE_VERSION_HEADER, REQUEST_ID_HEADER, captured, each_rate_header,
};
use crate::charging::charge::Receipt;
use crate::charging::hold::{HoldId, HoldUpdated};
use crate::charging::rate::RateStatus;
use crate::money::credits::Credits;
use crate::prices::number::PriceNumber;

/// The headers of the response to an accepted request: its rate limits, the balance, and the amount charged or held.
///
/// ```
/// use metering_core::wire::MeteredHeaders;
/// use metering_core::{Charge, MemoryStore, Service};
/// # use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let service = Service::with_defaults(Arc::new(MemoryStore::new()));
/// # let (_, key) = service.open_account("my-agent", "2".parse()?).await?;
/// let receipt = service.charge(Charge::new(&key, "0.25".parse()?, "GET", "/price")).await?;
/// let mut response = http::Response::new("served");
/// for (name, value) in MeteredHeaders::of(&receipt).lines() {
///     response.headers_mut().insert(name, value.parse()?);
/// }
/// assert_eq!(response.headers()["x-bds-credit-balance"], "1.75");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeteredHeaders {
    rate: RateStatus,
    balance: Credits,
    cost: Cost,
    request_id: Option<HoldId>,
    price_version: Option<PriceNumber>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cost {
    Charged(Credits),
    Held(Credits),
}

impl MeteredHeaders {
    /// The amount charged or held.
    #[must_use]
    pub fn of(receipt: &Receipt) -> Self {
        Self {
            rate: receipt.rate,
            balance: receipt.balance,
            cost: receipt.hold.map_or(Cost::Charged(receipt.charged), |held| Cost::Held(held.amount)),
            request_id: receipt.hold.map(|held| held.id),
            price_version: receipt.price_version,
        }
    }

    /// For a request whose hold was settled before its response was sent.
    #[must_use]
    pub fn settled(rate: RateStatus, settled: &HoldUpdated) -> Self {
        Self {
            rate,
            balance: settled.balance,
            cost: Cost::Charged(captured(settled)),
            request_id: Some(settled.hold.id),
            price_version: None,
        }
    }

    /// For a refunded request: a charge of zero, and the balance after the refund. The request still counts towards the
    /// rate limits.
    #[must_use]
    pub const fn refunded(rate: RateStatus, balance: Credits) -> Self {
        Self { rate, balance, cost: Cost::Charged(Credits::ZERO), request_id: None, price_version: None }
    }

    /// The balance in these headers.
    #[must_use]
    pub const fn balance(&self) -> Credits {
        self.balance
    }

    /// The same with another balance: after a payment that was executed once the cost was known.
    #[must_use]
    #[cfg(feature = "tower")]
    pub(crate) const fn with_balance(self, balance: Credits) -> Self {
        Self { balance, ..self }
    }

    /// The names and values of these headers, for any HTTP library.
    #[must_use]
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = Vec::new();
        self.each(|name, value| lines.push((name, value.to_string())));
        lines
    }

    /// Calls `set` with the name and value of each header.
    pub(crate) fn each(&self, mut set: impl FnMut(&'static str, &dyn Display)) {
        each_rate_header(&self.rate, &mut set);
        set(BALANCE_HEADER, &self.balance);
        match &self.cost {
            Cost::Charged(amount) => set(CHARGED_HEADER, amount),
            Cost::Held(amount) => set(HELD_HEADER, amount),
        }
        if let Some(id) = &self.request_id {
            set(REQUEST_ID_HEADER, id);
        }
        if let Some(number) = &self.price_version {
            set(PRICE_VERSION_HEADER, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::account::RateLimits;
    use crate::charging::rate::Window;
    use crate::clock::Timestamp;

    #[test]
    fn a_refund_shows_nothing_charged() {
        let (none, at) = (Window::default(), Timestamp::from_unix_millis(0));
        let rate = RateStatus::of(RateLimits::NONE, none, none, at);
        let headers = MeteredHeaders::refunded(rate, Credits::from_whole(2).unwrap()).lines();
        assert_eq!(headers, [(BALANCE_HEADER, "2".to_owned()), (CHARGED_HEADER, "0".to_owned())]);
    }
}
