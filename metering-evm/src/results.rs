//! Parses a source's response to a batch (JSON-RPC 2.0, section 6), and matches each response to its request.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::call::Call;
use crate::failure::{BATCH, Failure, RpcError};

/// The responses to a batch, in call order. Each value is parsed when it is read.
#[derive(Debug)]
pub(crate) struct BatchResults<'a> {
    rest: std::vec::IntoIter<(&'static str, Result<&'a RawValue, RpcError>)>,
}

#[derive(Deserialize)]
struct Reply<'a> {
    id: Option<u64>,
    /// `null` is a valid result: there is no such transaction or block.
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct ErrorObject {
    code: i64,
    #[serde(default)]
    message: String,
}

/// The response of a server that rejects the whole batch with a single error.
#[derive(Deserialize)]
struct Rejection {
    error: ErrorObject,
}

fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl From<ErrorObject> for RpcError {
    fn from(error: ErrorObject) -> Self {
        Self { code: error.code, message: error.message }
    }
}

impl<'a> BatchResults<'a> {
    /// Parses the response body of a batch of `calls`. Responses may come in any order, but each exactly once.
    pub(crate) fn parse(body: &'a [u8], calls: &[&Call]) -> Result<Self, Failure> {
        if let Some(error) = rejection(body) {
            return Err(Failure::Refused(error));
        }
        let replies: Vec<Reply<'a>> = serde_json::from_slice(body).map_err(|error| Failure::malformed(BATCH, error))?;
        Self::matching(replies, calls)
    }

    /// Parses the response body of a single call.
    pub(crate) fn parse_single(body: &'a [u8], call: &Call) -> Result<Self, Failure> {
        if let Some(error) = rejection(body) {
            return Ok(Self { rest: vec![(call.method, Err(error))].into_iter() });
        }
        let reply: Reply<'a> = serde_json::from_slice(body).map_err(|error| Failure::malformed(call.method, error))?;
        Self::matching(vec![reply], &[call])
    }

    /// The results of several requests as one.
    pub(crate) fn joined(parts: Vec<Self>) -> Self {
        let rest: Vec<_> = parts.into_iter().flat_map(|part| part.rest).collect();
        Self { rest: rest.into_iter() }
    }

    fn matching(replies: Vec<Reply<'a>>, calls: &[&Call]) -> Result<Self, Failure> {
        let mut slots: Vec<Option<Result<&RawValue, RpcError>>> = calls.iter().map(|_| None).collect();
        for reply in replies {
            let outcome: Result<&RawValue, RpcError> = match (reply.result, reply.error) {
                (_, Some(error)) => Err(error.into()),
                (Some(result), None) => Ok(result),
                (None, None) => return Err(Failure::malformed(BATCH, "a response without result or error")),
            };
            let slot = match (reply.id, &outcome) {
                // A server that rejects a batch may send an error without an id.
                (None, Err(error)) => return Err(Failure::Refused(error.clone())),
                (id, _) => id.and_then(|id| slots.get_mut(usize::try_from(id).ok()?)),
            };
            match slot {
                Some(slot @ None) => *slot = Some(outcome),
                Some(Some(_)) => return Err(Failure::malformed(BATCH, "two responses with the same id")),
                None => return Err(Failure::malformed(BATCH, "a response with an id that was not requested")),
            }
        }
        let in_order = calls.iter().zip(slots).map(|(call, outcome)| Some((call.method, outcome?)));
        let all: Option<Vec<_>> = in_order.collect();
        let all = all.ok_or_else(|| Failure::malformed(BATCH, "a response is missing"))?;
        Ok(Self { rest: all.into_iter() })
    }

    /// The next result. An error response counts as a failure of the source.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<T, Failure> {
        self.next_or_error()?.map_err(Failure::Rpc)
    }

    /// The next result, or the error response if there is one.
    pub(crate) fn next_or_error<T: DeserializeOwned>(&mut self) -> Result<Result<T, RpcError>, Failure> {
        let (method, outcome) = self.rest.next().ok_or_else(|| Failure::malformed(BATCH, "a response is missing"))?;
        match outcome {
            Ok(raw) => {
                let value = serde_json::from_str(raw.get()).map_err(|error| Failure::malformed(method, error))?;
                Ok(Ok(value))
            }
            Err(error) => Ok(Err(error)),
        }
    }
}

/// The error of a body that consists of a single error.
pub(crate) fn rejection(body: &[u8]) -> Option<RpcError> {
    serde_json::from_slice::<Rejection>(body).ok().map(|rejection| rejection.error.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::encoding::Quantity;

    fn parse(body: &Value) -> Result<(u64, Option<u64>), Failure> {
        let body = body.to_string();
        let calls = [Call::chain_id(), Call::block_number()];
        let mut results = BatchResults::parse(body.as_bytes(), &[&calls[0], &calls[1]])?;
        let Quantity(first) = results.next()?;
        let second: Option<Quantity> = results.next()?;
        Ok((first, second.map(|Quantity(number)| number)))
    }

    #[test]
    fn results_match_their_calls_in_any_order() {
        let body = json!([{"id": 1, "result": null, "error": null}, {"jsonrpc": "2.0", "id": 0, "result": "0x5"}]);
        assert_eq!(parse(&body), Ok((5, None)));
    }

    #[test]
    fn mismatched_batches_are_malformed() {
        let good = json!({"id": 0, "result": "0x5"});
        // body, part of the problem
        let table = [
            (json!([]), "missing"),
            (json!([good]), "missing"),
            (json!([good, good]), "two responses"),
            (json!([good, {"id": 2, "result": "0x1"}]), "was not requested"),
            (json!([good, {"id": null, "result": "0x1"}]), "was not requested"),
            (json!([good, {"id": u64::MAX, "result": "0x1"}]), "was not requested"),
            (json!([good, {"id": "1", "result": "0x1"}]), "invalid type"),
            (json!([good, {"id": 1.0, "result": "0x1"}]), "invalid type"),
            (json!([good, {"id": 1}]), "without result"),
            (json!([good, {"id": 1, "result": 5}]), "invalid type"),
            (json!({"id": 0, "result": "0x5"}), "invalid type"),
            (json!("0x5"), "invalid type"),
        ];
        for (body, problem) in table {
            let failure = parse(&body).unwrap_err();
            assert!(matches!(failure, Failure::Malformed { .. }), "{body}: {failure}");
            assert!(failure.to_string().contains(problem), "{body}: {failure}");
        }
    }

    #[test]
    fn error_belongs_to_one_call_or_the_whole_batch() {
        let error = json!({"code": -32005, "message": "limit exceeded", "data": {"see": []}});
        let bodies = [
            (json!({"jsonrpc": "2.0", "id": null, "error": error}), true),
            (json!([{"id": null, "error": error}]), true),
            (json!([{"id": 0, "result": "0x5"}, {"id": 1, "error": error}]), false),
        ];
        for (body, of_the_batch) in bodies {
            let failure = parse(&body).unwrap_err();
            assert!(failure.to_string().starts_with("error -32005: limit exceeded"), "{body}: {failure}");
            assert_eq!(matches!(failure, Failure::Refused(_)), of_the_batch, "{body}");
        }
        // A single call has no batch.
        let call = Call::chain_id();
        let body = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
        let mut results = BatchResults::parse_single(body.as_bytes(), &call).unwrap();
        assert!(matches!(results.next::<Quantity>(), Err(Failure::Rpc(_))));
        let mut results = BatchResults::parse_single(br#"{"id": 0, "result": "0x5"}"#, &call).unwrap();
        assert!(matches!(results.next(), Ok(Quantity(5))));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "(0x)?[0-9a-f]{0,70}".prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        let key = prop_oneof!["id|result|error|code|message".prop_map(String::from), any::<String>()];
        leaf.prop_recursive(4, 32, 4, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(key.clone(), inner, 0..4).prop_map(Value::from_iter),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(body in any_json()) {
            let _ = parse(&body);
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let call = Call::chain_id();
            if let Ok(mut results) = BatchResults::parse(&body, &[&call]) {
                let _ = results.next::<Quantity>();
            }
        }
    }
}
