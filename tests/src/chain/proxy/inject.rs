//! Forwards requests to the node, and injects faults into its responses.

use std::io;

use serde_json::{Value, json};

use super::fault::{Fault, Garbage};
use super::lag::Lag;
use crate::chain::rpc::hex;
use crate::client::Client;

/// The calls of a batch, or the single call.
pub(super) fn calls(request: &Value) -> &[Value] {
    request.as_array().map_or(std::slice::from_ref(request), Vec::as_slice)
}

/// The response body for a single request or a batch, with the fault applied.
pub(crate) fn forward(node: &Client, request: &Value, fault: &Fault) -> io::Result<Vec<u8>> {
    if let Fault::RpcError(code, message) = fault {
        return Ok(each(request, |call| rpc_error(call, *code, message)).to_string().into_bytes());
    }
    let lag = match fault {
        Fault::Lag(blocks) => Some(Lag::measure(node, *blocks)?),
        _ => None,
    };
    let forwarded = match &lag {
        Some(lag) => each(request, |call| lag.rewrite_request(call)),
        None => request.clone(),
    };
    let body = node.try_send("POST", "/", Some(forwarded.to_string().as_bytes()))?.body;
    match fault {
        Fault::PassThrough => return Ok(body),
        Fault::Garbage(Garbage::Truncated) => return Ok(body[..body.len() / 2].to_vec()),
        _ => {}
    }
    let mut response: Value = serde_json::from_slice(&body)?;
    let replies = match &mut response {
        Value::Array(replies) => replies.as_mut_slice(),
        one => std::slice::from_mut(one),
    };
    for reply in replies {
        let Some(call) = calls(request).iter().find(|call| call["id"] == reply["id"]) else { continue };
        match &lag {
            Some(lag) => lag.rewrite_response(call, reply),
            None => inject(fault, call, reply),
        }
    }
    Ok(response.to_string().into_bytes())
}

fn inject(fault: &Fault, call: &Value, reply: &mut Value) {
    let method = call["method"].as_str().unwrap_or_default();
    match (fault, method) {
        (Fault::Garbage(Garbage::WrongId), _) => reply["id"] = json!(reply["id"].as_u64().map(|id| id + 1_000)),
        (_, _) if reply["result"].is_null() => {}
        (Fault::NullReceipts, "eth_getTransactionReceipt" | "eth_getTransactionByHash") => {
            reply["result"] = Value::Null;
        }
        (Fault::WrongChainId(id), "eth_chainId") => reply["result"] = json!(hex(*id)),
        (Fault::WrongChainId(id), "net_version") => reply["result"] = json!(id.to_string()),
        (Fault::OtherBlockHash, "eth_getBlockByNumber") => change_last_digit(&mut reply["result"]["hash"]),
        (Fault::TamperedTransaction, "eth_getTransactionByHash") => change_last_digit(&mut reply["result"]["value"]),
        (Fault::TamperedReceipt, "eth_getTransactionReceipt") => {
            for log in reply["result"]["logs"].as_array_mut().into_iter().flatten() {
                change_last_digit(&mut log["data"]);
            }
        }
        _ => {}
    }
}

/// Changes a hexadecimal number by one, and any other byte string as little as possible.
fn change_last_digit(value: &mut Value) {
    let Some(text) = value.as_str() else { return };
    let changed = text.strip_prefix("0x").and_then(|digits| {
        let (rest, last) = digits.split_at_checked(digits.len().checked_sub(1)?)?;
        let last = u8::from_str_radix(last, 16).ok()? ^ 1;
        Some(format!("0x{rest}{last:x}"))
    });
    if let Some(changed) = changed {
        *value = Value::String(changed);
    }
}

fn rpc_error(call: &Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": call["id"], "error": { "code": code, "message": message } })
}

/// Maps each call of a batch, or the single call.
fn each(request: &Value, change: impl Fn(&Value) -> Value) -> Value {
    match request {
        Value::Array(calls) => calls.iter().map(change).collect(),
        one => change(one),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_digit_changes_by_one() {
        // before, after
        let table = [
            (json!("0x0"), json!("0x1")),
            (json!("0xf"), json!("0xe")),
            (json!("0x4c4b40"), json!("0x4c4b41")),
            (json!("0x"), json!("0x")),
            (json!(null), json!(null)),
        ];
        for (mut value, after) in table {
            change_last_digit(&mut value);
            assert_eq!(value, after);
        }
    }
}
