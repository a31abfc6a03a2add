//! Errors of the sample feed, as clients see them.

use bytes::Bytes;
use metering_core::chains::Address;
use serde::Serialize;

use crate::SampleResponse;
use crate::chain::BlockNumber;
use crate::document::{NOTICE, to_json};

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The sample has no such path.
    UnknownRoute,
    /// The sample has no pool with this address.
    UnknownPool(Address),
    /// The sample has no token with this address.
    UnknownToken(Address),
    /// The requested block is not final yet.
    NotFinal { finalized: Option<BlockNumber> },
    /// A parameter is invalid.
    Invalid { name: &'static str, problem: String },
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<Fields<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finalized_block: Option<Option<BlockNumber>>,
    sample: bool,
    notice: &'static str,
}

/// The problem with one parameter, serialized as a JSON object with one entry.
struct Fields<'a> {
    name: &'static str,
    problem: &'a str,
}

impl Refusal {
    /// A parameter is invalid.
    pub(crate) fn invalid(name: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { name, problem: problem.into() }
    }

    /// The error response.
    pub(crate) fn into_response(self) -> SampleResponse {
        let (status, error) = match self {
            Self::UnknownRoute => (404, "unknown_route"),
            Self::UnknownPool(_) => (404, "unknown_pool"),
            Self::UnknownToken(_) => (404, "unknown_token"),
            Self::NotFinal { .. } => (404, "block_not_final"),
            Self::Invalid { .. } => (400, "invalid_parameter"),
        };
        SampleResponse::Json { status, body: self.body(error) }
    }

    fn body(&self, error: &'static str) -> Bytes {
        let fields = match self {
            Self::Invalid { name, problem } => Some(Fields { name, problem }),
            _ => None,
        };
        let finalized_block = match self {
            Self::NotFinal { finalized } => Some(*finalized),
            _ => None,
        };
        to_json(&Body { error, message: self.message(), fields, finalized_block, sample: true, notice: NOTICE })
    }

    fn message(&self) -> String {
        match self {
            Self::UnknownRoute => "the sample data has no such route".to_owned(),
            Self::UnknownPool(address) => {
                format!("the sample data has no pool {address}; /mpp/dailyActivePools lists its pools")
            }
            Self::UnknownToken(address) => {
                format!("the sample data has no token {address}; /mpp/dailyActiveTokens lists its tokens")
            }
            Self::NotFinal { finalized: Some(block) } => {
                format!("the block is not final yet; the latest final block is {}", block.get())
            }
            Self::NotFinal { finalized: None } => "no block is final yet; check the server's clock".to_owned(),
            Self::Invalid { name, problem } => format!("{name} {problem}"),
        }
    }
}

impl Serialize for Fields<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.name, self.problem)])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_refusal_says_what_to_do_about_it() {
        let pool = Address::ZERO;
        // refusal, status, specific fields of the body
        let table = [
            (Refusal::UnknownRoute, 404, json!({"error": "unknown_route"})),
            (Refusal::UnknownPool(pool), 404, json!({"error": "unknown_pool"})),
            (Refusal::UnknownToken(pool), 404, json!({"error": "unknown_token"})),
            (
                Refusal::NotFinal { finalized: Some(BlockNumber::from_u64(7)) },
                404,
                json!({"error": "block_not_final", "finalized_block": 7}),
            ),
            (Refusal::NotFinal { finalized: None }, 404, json!({"error": "block_not_final", "finalized_block": null})),
            (
                Refusal::invalid("page", "must be at least 1"),
                400,
                json!({"error": "invalid_parameter", "fields": {"page": "must be at least 1"}}),
            ),
        ];
        for (refusal, status, own) in table {
            let SampleResponse::Json { status: given, body } = refusal.into_response() else { panic!("not JSON") };
            assert_eq!(given, status);
            let mut body: Value = serde_json::from_slice(&body).unwrap();
            let fields = body.as_object_mut().unwrap();
            assert!(fields.remove("message").unwrap().as_str().unwrap().len() > 20);
            assert_eq!(fields.remove("sample"), Some(json!(true)));
            assert_eq!(fields.remove("notice"), Some(json!(NOTICE)));
            assert_eq!(body, own);
        }
    }
}
