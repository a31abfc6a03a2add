//! `metering mcp`, as an MCP client starts it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout};

use serde_json::{Value, json};

use super::client;
use super::prices::CATALOGUE;
use crate::program::Program;
use crate::stand_in::Reply;

/// A client of the program that speaks JSON-RPC, one message per line.
pub(crate) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    /// Starts the program.
    pub(crate) fn start(program: &Program, line: &str) -> Self {
        let mut child = program.start(line);
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdin, stdout, calls: 0 }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params }));
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        let response: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(response["id"], self.calls, "{response}");
        response["result"].clone()
    }

    pub(crate) fn begin(&mut self) -> Value {
        let client = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let result = self.call("initialize", params);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        result
    }

    /// Closes standard input; returns the rest of the output, the exit code and stderr.
    pub(crate) fn end(mut self) -> (String, i32, String) {
        drop(self.stdin.take());
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut self.stdout, &mut rest).unwrap();
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut stderr).unwrap();
        (rest, self.child.wait().unwrap().code().unwrap(), stderr)
    }
}

#[test]
fn a_local_client_lists_and_calls_the_tools_with_the_profiles_key() {
    let price = Reply::ok(r#"{"price": "3000.5"}"#).charged("0.5", "1.5");
    let (program, service) = client([
        ("/endpoints.json", Reply::ok(CATALOGUE)),
        ("/mpp/ethPrice", price),
        ("/mpp/token/a", Reply::error(402, "insufficient_credits")),
    ]);
    let mut client = Client::start(&program, "mcp");
    let started = client.begin();
    assert_eq!(started["serverInfo"]["name"], "metering");
    let tools = client.call("tools/list", json!({}));
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["bds_mpp_ethPrice", "bds_mpp_token_name", "bds_mpp_stream", "get_credit_balance", "list_plans"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let result = client.call("tools/call", json!({ "name": "bds_mpp_ethPrice", "arguments": {} }));
    assert_eq!(result["structuredContent"]["data"]["price"], "3000.5", "{result}");
    let arguments = json!({ "name": "a", "q": "b" });
    let refused = client.call("tools/call", json!({ "name": "bds_mpp_token_name", "arguments": arguments }));
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused.to_string().contains("insufficient_credits"), "{refused}");
    let (rest, code, stderr) = client.end();
    assert_eq!((rest.as_str(), code, stderr.as_str()), ("", 0, ""));
    let key = program.text("$key");
    for request in service.requests().iter().filter(|request| request.target.starts_with("/mpp/")) {
        // `Authorization` is left to payments.
        assert_eq!((request.header("authorization"), request.header("x-api-key")), (None, Some(key.as_str())));
        assert_eq!(request.header("x-bds-client-source"), Some("mcp"));
    }
}

#[test]
fn missing_or_unexpected_input_does_not_panic() {
    let (program, _service) = client([("/endpoints.json", Reply::ok(CATALOGUE))]);
    let (rest, code, stderr) = Client::start(&program, "mcp").end();
    assert_eq!((rest.as_str(), code, stderr.as_str()), ("", 0, ""));
    let mut client = Client::start(&program, "mcp --stream-wait 1");
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let (_, code, stderr) = client.end();
    assert!(code == 0 || (code == 1 && stderr.lines().count() == 1), "{code} {stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains(&program.text("$key")), "{stderr}");
}

#[test]
fn missing_catalogue_is_reported_at_once() {
    let (program, service) = client([]);
    program.refuses(&[
        ("mcp", 4, ""),
        ("mcp --stream-wait 0", 2, ""),
        ("mcp --stream-wait 601", 2, ""),
        ("mcp --stream-wait x", 2, ""),
    ]);
    service.on("/endpoints.json", Reply::html(200));
    let ran = program.run("mcp");
    assert_eq!(ran.stdout, "");
    ran.failure(1);
}
