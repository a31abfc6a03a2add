//! The failure of a command for a server's refusal.

use metering_client::ClientError;

use crate::failure::Failure;

/// The failure of an action. Unless the server says that nothing changed, the outcome is unknown, and a retry could
/// repeat the action.
pub(super) fn unknown_outcome(error: &ClientError) -> Option<Failure> {
    let is_certain = match error {
        ClientError::Refused(refusal) => {
            !refusal.status.is_server_error() || matches!(&*refusal.code, "storage_unavailable" | "rpc_error")
        }
        ClientError::Unreachable(_) | ClientError::Garbled(_) => false,
    };
    let advice = "it is unknown whether this was done: look at `metering admin audit` before you try again";
    (!is_certain).then(|| Failure::Failed(format!("{error}; {advice}")))
}

/// The failure for a response of the admin address, where keys and wallets do not help.
pub(in crate::admin) fn refused(error: ClientError) -> Failure {
    match &error {
        ClientError::Refused(refusal) if refusal.status.as_u16() == 401 => Failure::Unauthorized(format!(
            "{refusal} The token is wrong or revoked; create one with `metering admin operator create` where the database is"
        )),
        ClientError::Refused(refusal) if refusal.status.as_u16() == 403 => Failure::Unauthorized(refusal.to_string()),
        _ => error.into(),
    }
}
