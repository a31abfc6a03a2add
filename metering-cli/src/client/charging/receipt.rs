//! Prints the charge from a response's headers, or the credits held until the cost is known.

use std::io::Write;
use std::time::Duration;

use http::HeaderMap;
use metering_client::Client;
use metering_client::calls::account::{GetRequest, OfRequest};
use metering_core::charging::HoldId;
use metering_core::wire::{
    BALANCE_HEADER, CHARGED_HEADER, HELD_HEADER, RECEIPT_HEADER, REQUEST_ID_HEADER, RequestDocument, RequestState,
};

use crate::failure::Failure;
use crate::new_file::NewFile;
use crate::output::notice;
use crate::table::printable;

/// How long to wait for the cost of a request whose response has ended.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Credits that are held for a request.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    amount: String,
    request: Option<HoldId>,
}

/// Prints the charge and the balance; nothing if the route is not metered.
pub(crate) fn print_charge(headers: &HeaderMap) {
    let balance = header(headers, BALANCE_HEADER);
    if let Some(held) = Held::read(headers) {
        let balance = balance.map(|balance| format!(" The balance is {balance} credits.")).unwrap_or_default();
        return notice(&format!("{}{balance}", held.sentence()));
    }
    match (header(headers, CHARGED_HEADER), balance) {
        (Some(charged), Some(balance)) => notice(&format!("Charged {charged} credits; the balance is {balance}.")),
        (None, Some(balance)) => notice(&format!("The balance is {balance} credits.")),
        (Some(charged), None) => notice(&format!("Charged {charged} credits.")),
        (None, None) => {}
    }
}

/// The same, after the whole response was received: the cost of a request that was held may be known by now.
pub(crate) async fn print_final_charge(client: &Client, headers: &HeaderMap) {
    match Held::read(headers) {
        Some(held) => match held.charged(client).await {
            Some(sentence) => notice(&sentence),
            None => print_charge(headers),
        },
        None => print_charge(headers),
    }
}

/// Writes the signed receipt of a request that asked for one, after the whole response was received. Without one in the
/// response's head, because the cost was not known then, it fetches the receipt that the service has by now.
pub(crate) async fn save(client: &Client, headers: &HeaderMap, mut file: NewFile) -> Result<(), Failure> {
    let receipt = match (header(headers, RECEIPT_HEADER), Held::read(headers)) {
        (None, Some(held)) => held.settled(client).await.and_then(|request| request.receipt),
        (receipt, _) => receipt,
    };
    let Some(receipt) = receipt else {
        notice("The response has no signed receipt, so none was written.");
        return Ok(());
    };
    writeln!(file, "{receipt}").map_err(|error| file.cannot_write(&error))?;
    file.finish()
}

impl Held {
    /// The credits held for the request with this response; `None` if its cost is known.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        if headers.contains_key(CHARGED_HEADER) {
            return None;
        }
        let request = header(headers, REQUEST_ID_HEADER).and_then(|id| id.parse().ok());
        Some(Self { amount: header(headers, HELD_HEADER)?, request })
    }

    /// Prints that credits are held, and how to look up the cost.
    pub(crate) fn sentence(&self) -> String {
        let Self { amount, request } = self;
        match request {
            Some(id) => format!(
                "Holding {amount} credits until the cost is known: `metering requests show {id}` shows what was charged."
            ),
            None => format!("Holding {amount} credits until the cost is known."),
        }
    }

    /// The charge for the request, according to the service now; `None` if it does not know yet, or cannot be reached.
    pub(crate) async fn charged(&self, client: &Client) -> Option<String> {
        let (charged, amount) = (self.settled(client).await?.charged, &self.amount);
        Some(format!("Charged {charged} credits; {amount} were held."))
    }

    /// The request, once its cost is known.
    async fn settled(&self, client: &Client) -> Option<RequestDocument> {
        let of = OfRequest { id: self.request.as_ref()?.to_string() };
        let asked = tokio::time::timeout(LOOKUP_TIMEOUT, client.call::<GetRequest>(&of, &()));
        let request: RequestDocument = asked.await.ok()?.ok()?.json().ok()?;
        Some(request).filter(|request| request.state != RequestState::Held)
    }
}

/// A header's value, safe to print.
pub(crate) fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name)?.to_str().ok().map(printable)
}
