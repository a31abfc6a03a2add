//! Registers a payment with the service, with retries until the service sees it confirmed.

use metering_client::{Client, ClientError, Refusal, Response};
use serde::Serialize;

use crate::client::payments::payment::connection::{ChainConnection, TxState};
use crate::client::payments::payment::entry::Entry;
use crate::client::payments::payment::retry::{PaymentRetries, interrupted, uninterrupted};
use crate::client::payments::payment::sending::{failed_payment, sentence};
use crate::failure::Failure;
use crate::output::notice;

/// Final error codes: the service will never accept this payment for this purpose.
const FINAL: [&str; 12] = [
    "payment_mismatch",
    "payer_mismatch",
    "payment_predates_quote",
    "payment_predates_service",
    "payment_reserved",
    "payer_already_registered",
    "tx_already_used",
    "invalid_tx_hash",
    "quote_expired",
    "unknown_plan",
    "unsupported_chain",
    "unsupported_token",
];

/// The service's final response.
#[derive(Debug)]
pub(crate) enum RegistrationResult {
    /// It accepted the payment.
    Accepted(Response),
    /// It rejected the payment, and a retry would not help.
    Refused(Box<Refusal>),
}

/// A payment whose state on the chain is watched while it is registered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) connection: Option<&'a ChainConnection>,
}

/// Retries until the service accepts or rejects the payment.
pub(crate) async fn register(
    client: &Client,
    target: &str,
    body: &impl Serialize,
    retries: &mut PaymentRetries,
    watched: Option<Watched<'_>>,
) -> Result<RegistrationResult, Failure> {
    let mut last_notice = String::new();
    loop {
        let (response, stop) = uninterrupted(client.post(target, body)).await?;
        let error = match response {
            Ok(response) => return Ok(RegistrationResult::Accepted(response)),
            Err(ClientError::Refused(refusal)) if !is_temporary(&refusal, watched) => {
                return Ok(RegistrationResult::Refused(refusal));
            }
            // The response that was cut off may have been a success; a retry finds out.
            Err(error) => error,
        };
        if stop {
            return Err(interrupted());
        }
        let progress = progress(&error);
        if last_notice != progress {
            notice(&progress);
            last_notice = progress;
        }
        if let Some(watched) = watched.filter(|_| is_chain_error(error.code().unwrap_or_default())) {
            let (checked, stop) = uninterrupted(watched.check_payment()).await?;
            checked?;
            if stop {
                return Err(interrupted());
            }
        }
        if !retries.pause(error.retry_after()).await? {
            let again = watched.map_or("the same command", |watched| watched.entry.command());
            return Err(Failure::TryLater(format!(
                "{} Nothing is lost: run {again} again to continue.",
                sentence(&error.to_string())
            )));
        }
    }
}

impl Watched<'_> {
    /// Fails if the payment will never be confirmed, and sends it again if the chain does not know it.
    async fn check_payment(&self) -> Result<(), Failure> {
        let (Some(connection), Some(signed)) = (self.connection, self.entry.payment.signed()) else { return Ok(()) };
        match connection.state(signed).await {
            Ok(TxState::Dead(failure)) => Err(failed_payment(self.entry, failure)),
            Ok(TxState::Unknown) => {
                // If this fails, the next round tries again.
                let _ = connection.send(signed).await;
                Ok(())
            }
            // The service decides; this check only finds failures earlier.
            Ok(TxState::Live) | Err(_) => Ok(()),
        }
    }
}

/// Whether the service will never accept this payment for this purpose.
pub(crate) fn is_final(refusal: &Refusal) -> bool {
    FINAL.contains(&refusal.code.as_str())
}

/// The failure for a rejected payment. `kept` is the text about where the payment is recorded.
pub(crate) fn refused(refusal: &Refusal, note: &str) -> Failure {
    let advice = match refusal.code.as_str() {
        "tx_already_used" => "A payment can be credited only once.",
        "payment_reserved" => "It pays a quote: claim it with `metering signup-pay --tx HASH`.",
        "payer_already_registered" => {
            "Get the key of the wallet's account with `metering rotate`, then register the payment there with \
             `metering topup --tx HASH`."
        }
        "tx_reverted" => "Only its fee was paid.",
        "unauthorized" => "`metering rotate` gets a new key.",
        _ if is_final(refusal) => "If it was paid, the service's operator can assign it to an account.",
        _ => "",
    };
    let parts = [refusal.message.as_str(), advice, note].map(str::trim);
    let message = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let explained = Refusal { message, ..refusal.clone() };
    let spent = is_final(refusal) || refusal.code == "tx_reverted";
    if spent { Failure::Conflict(explained.to_string()) } else { ClientError::from(explained).into() }
}

/// Whether a retry may get another response. A failed transaction may still succeed in another block until it has
/// enough confirmations; if it was sent from here, the chain shows when it no longer can.
fn is_temporary(refusal: &Refusal, watched: Option<Watched<'_>>) -> bool {
    let made_here =
        watched.is_some_and(|watched| watched.connection.is_some() && watched.entry.payment.signed().is_some());
    match refusal.code.as_str() {
        "payment_unconfirmed" | "tx_not_found" => true,
        "tx_reverted" => made_here,
        _ => matches!(refusal.status.as_u16(), 408 | 429 | 500..=599),
    }
}

/// Whether to check the chain as well.
fn is_chain_error(code: &str) -> bool {
    matches!(code, "payment_unconfirmed" | "tx_not_found" | "tx_reverted")
}

fn progress(error: &ClientError) -> String {
    match error {
        ClientError::Refused(refusal) if refusal.code == "payment_unconfirmed" => {
            let field = |name: &str| refusal.field(name).unwrap_or_else(|| "?".to_owned());
            format!("Waiting: {} of {} confirmations.", field("confirmations"), field("required"))
        }
        ClientError::Refused(refusal) if refusal.code == "tx_not_found" => {
            "Waiting: the service does not see the transaction yet.".to_owned()
        }
        error => format!("Waiting: {error}").replace(char::is_control, " "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, code: &str) -> Refusal {
        let body = format!(r#"{{"error":"{code}","message":"Sentence.","confirmations":1,"required":12}}"#);
        Refusal::read(http::StatusCode::from_u16(status).unwrap(), &http::HeaderMap::new(), body.into())
    }

    #[test]
    fn only_temporary_rejections_are_waited_for() {
        // status, code, passes
        let table = [
            (404, "tx_not_found", true),
            (404, "not_found", false),
            (409, "payment_unconfirmed", true),
            (409, "tx_already_used", false),
            (409, "already_claimed", false),
            (400, "payment_mismatch", false),
            (400, "tx_reverted", false),
            (401, "unauthorized", false),
            (403, "payer_proof_required", false),
            (410, "quote_expired", false),
            (408, "request_timeout", true),
            (429, "rate_limited", true),
            (500, "internal_error", true),
            (502, "rpc_error", true),
            (503, "overloaded", true),
        ];
        for (status, code, passes) in table {
            assert_eq!(is_temporary(&refusal(status, code), None), passes, "{status} {code}");
        }
    }

    #[test]
    fn progress_counts_confirmations() {
        let error = ClientError::from(refusal(409, "payment_unconfirmed"));
        assert_eq!(progress(&error), "Waiting: 1 of 12 confirmations.");
    }
}
