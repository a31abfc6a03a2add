//! The cost of a request whose head was sent before it was known, because its response was passed on as it arrived.
//!
//! The service ends such a response once its cost is known. So a client that has read all of it can query the cost.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use metering_core::Credits;
use metering_core::charging::HoldId;
use metering_core::wire::{
    BALANCE_HEADER, CHARGED_HEADER, HELD_HEADER, RECEIPT_HEADER, REQUEST_ID_HEADER, RequestDocument, RequestState,
};

use crate::calls::account::{GetRequest, OfRequest};
use crate::client::Client;
use crate::response::header;

/// How long a result waits for the cost.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The headers of a response that was read to its end, with the request's cost if the service has it, and its signed
/// receipt if `client` requests one. `client` must not pay: it only queries the request.
pub(super) async fn with_cost(client: &Client, headers: &HeaderMap) -> HeaderMap {
    let id = header(headers, REQUEST_ID_HEADER).and_then(|id| id.parse::<HoldId>().ok());
    let is_held = headers.contains_key(HELD_HEADER) && !headers.contains_key(CHARGED_HEADER);
    let Some(id) = id.filter(|_| is_held && client.has_key()) else { return headers.clone() };
    let of = OfRequest { id: id.to_string() };
    let asked = tokio::time::timeout(LOOKUP_TIMEOUT, client.call::<GetRequest>(&of, &())).await;
    let request = asked.ok().and_then(Result::ok).and_then(|response| response.json::<RequestDocument>().ok());
    match request.filter(|request| request.state != RequestState::Held) {
        Some(request) => settled(headers, request.charged, request.receipt).unwrap_or_else(|| headers.clone()),
        None => headers.clone(),
    }
}

/// The headers of a request that cost this. Its balance is that of its hold, corrected by what the hold has released.
fn settled(headers: &HeaderMap, charged: Credits, receipt: Option<String>) -> Option<HeaderMap> {
    let amount = |name: &str| Credits::from_printed(header(headers, name)?).ok();
    let balance = amount(BALANCE_HEADER)?.checked_add(amount(HELD_HEADER)?)?.checked_sub(charged)?;
    let mut headers = headers.clone();
    headers.remove(HELD_HEADER);
    let amounts = [(BALANCE_HEADER, balance.to_string()), (CHARGED_HEADER, charged.to_string())];
    for (name, value) in amounts.into_iter().chain(receipt.map(|receipt| (RECEIPT_HEADER, receipt))) {
        headers.insert(HeaderName::from_static(name), HeaderValue::try_from(value).ok()?);
    }
    Some(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balance_is_that_after_the_cost() {
        // balance, held, charged, balance
        let table = [
            ("0.5", "0.5", "0.042", "0.958"),
            ("0.5", "0.5", "0.5", "0.5"),
            ("0.5", "0.5", "0.9", "0.1"),
            ("-0.0000000001", "0.0006944444", "0", "0.0006944443"),
        ];
        for (balance, held, charged, after) in table {
            let value = |text: &'static str| HeaderValue::from_static(text);
            let mut headers = HeaderMap::new();
            headers.insert(BALANCE_HEADER, value(balance));
            headers.insert(HELD_HEADER, value(held));
            let headers = settled(&headers, charged.parse().unwrap(), None).unwrap();
            assert_eq!(header(&headers, BALANCE_HEADER), Some(after));
            assert_eq!((header(&headers, CHARGED_HEADER), headers.get(HELD_HEADER)), (Some(charged), None));
        }
        assert_eq!(settled(&HeaderMap::new(), Credits::ZERO, None), None);
    }
}
