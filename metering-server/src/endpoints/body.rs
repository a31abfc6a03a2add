//! Parses JSON bodies.

use metering_core::Error;
use metering_core::wire::ErrorCode;
use serde::de::DeserializeOwned;

use crate::http::Problem;

/// Parses a body that is a JSON object. Unknown fields are ignored.
///
/// # Errors
/// 400, naming the field if one is at fault.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    // serde also reads a struct from an array of its values, which no client intends, and its errors would name our
    // Rust types.
    if body.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        let any: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(body);
        return Err(any.map_or_else(|error| not_json(&error), |_| Error::field("body", "must be a JSON object").into()));
    }
    // Tracking the field costs more than reading the body, so a body is read again for it only if it is refused.
    if let Ok(request) = serde_json::from_slice(body) {
        return Ok(request);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let request = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (path, cause) = (error.path().to_string(), error.into_inner());
        if cause.is_data() {
            return Error::field(if path == "." { "body" } else { &path }, cause).into();
        }
        not_json(&cause)
    })?;
    json.end().map_err(|error| not_json(&error))?;
    Ok(request)
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(ErrorCode::InvalidJson, format!("The body is not valid JSON: {error}."))
}

#[cfg(test)]
mod tests {
    use metering_core::wire::{ClaimRequest, DeductRequest, QuoteRequest};

    use super::*;

    #[test]
    fn body_errors_are_distinguished() {
        use ErrorCode::{InvalidJson, ValidationFailed};
        // body, code
        let table: [(&[u8], ErrorCode); 11] = [
            (b"null", ValidationFailed),
            (b" \"text\"", ValidationFailed),
            (b"[{}]", ValidationFailed),
            (b"[", InvalidJson),
            (b"", InvalidJson),
            (b"{", InvalidJson),
            (b"{\"path\": \"/x\", \"method\": \"GET\"} trailing", InvalidJson),
            (b"{\"path\": \"\xff\", \"method\": \"GET\"}", InvalidJson),
            (b"[]", ValidationFailed),
            (b"[\"/x\", \"GET\", null, 1, null, null, null, null]", ValidationFailed),
            (b"{\"path\": 5, \"method\": \"GET\"}", ValidationFailed),
        ];
        for (body, code) in table {
            let problem = read::<DeductRequest>(body).unwrap_err();
            assert_eq!(problem.code(), code, "{}", String::from_utf8_lossy(body));
            assert!(!format!("{problem:?}").contains("struct"), "{problem:?}");
        }
        let request: DeductRequest =
            read(b"{\"path\": \"/x\", \"method\": \"GET\", \"credit_weight\": 2.5, \"unknown\": 1}").unwrap();
        assert_eq!(request.credit_weight, "2.5".parse().ok());
    }

    #[test]
    fn bodies_of_payments_take_what_clients_send() {
        let request: QuoteRequest = read(b"{\"chain_id\": \"8453\", \"email\": null, \"more\": []}").unwrap();
        assert_eq!(request.chain_id.map(|id| id.0), Some(8453));
        assert_eq!(read::<QuoteRequest>(b"{\"chain_id\": -1}").unwrap_err().code(), ErrorCode::ValidationFailed);
        let request: ClaimRequest = read(b"{\"signup_nonce\": \"sqn_x\"}").unwrap();
        assert!(request.tx_hash.is_none());
    }
}
