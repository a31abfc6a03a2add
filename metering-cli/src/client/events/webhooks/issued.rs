//! A new secret: prints it, once.

use std::io::Write;

use metering_client::{ClientError, Refusal, Response};
use metering_core::wire::IssuedWebhookResponse;

use crate::client::session::documents::Document;
use crate::failure::Failure;
use crate::output::notice;
use crate::table::write_pairs;

/// The failure of a request that issues a secret. If its outcome is unknown, the service may have issued one; `then`
/// tells the user what to do in that case.
pub(super) fn unless_lost(error: ClientError, then: &str) -> Failure {
    match error {
        ClientError::Refused(refusal) if !is_unknown(&refusal) => ClientError::Refused(refusal).into(),
        error => Failure::TryLater(format!("the outcome is unknown ({error}): there may be a new secret; {then}")),
    }
}

/// Whether the service may have acted anyway: it says so, or a proxy responded instead.
fn is_unknown(refusal: &Refusal) -> bool {
    refusal.code == "outcome_unknown" || refusal.code.starts_with("http_5")
}

/// Writes the webhook and the secret of a response. The secret can never be printed again, so even a closed pipe is a
/// failure here, and the error says what to do.
pub(super) fn write(response: &Response, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let document: Document<IssuedWebhookResponse> = Document::of(response.clone())?;
    let IssuedWebhookResponse { secret, data } = &document.content;
    let lost = |failure: Failure| {
        Failure::Failed(format!(
            "could not write the new secret of webhook {id} ({failure}), so it is lost; get another with \
             `metering webhooks rotate {id}`",
            id = data.id
        ))
    };
    if json {
        return document.write_json(out).and_then(|()| Ok(out.flush()?)).map_err(lost);
    }
    let secret = secret.secret().expose();
    let pairs: [(&str, &dyn std::fmt::Display); 3] =
        [("Webhook", &data.id), ("URL", &data.url), ("Secret", &secret.as_str())];
    write_pairs(out, &pairs).and_then(|()| Ok(out.flush()?)).map_err(lost)?;
    notice(&format!(
        "The secret is shown only once; save it now, where your server can read it to verify signatures. If you lose \
         it, replace it with\n  metering webhooks rotate {}",
        data.id
    ));
    Ok(())
}
