//! A session of an SDK's client with a server.

use std::sync::Arc;

use serde_json::{Value, json};

use super::process::{Failure, Pending, Process};

/// An open session. It lasts until it is closed, or its process ends.
#[derive(Debug)]
pub struct Session {
    process: Arc<Process>,
    name: u64,
}

/// A tool call in progress.
#[derive(Debug)]
#[must_use = "the result of the call must be checked"]
pub struct PendingCall(Pending);

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Whether it is a tool error, which agents see.
    pub is_error: bool,
    /// The structured content; null if there is none.
    pub structured: Value,
    /// The text of the first content item.
    pub text: String,
}

impl Session {
    pub(super) fn new(process: Arc<Process>, name: u64) -> Self {
        Self { process, name }
    }

    /// Every tool, as the server describes it.
    #[track_caller]
    #[must_use]
    pub fn tools(&self) -> Vec<Value> {
        let listed = self.try_tools().unwrap_or_else(|failure| panic!("the tools cannot be listed: {failure:?}"));
        listed.as_array().expect("tools are a list").clone()
    }

    /// Like [`Session::tools`].
    ///
    /// # Errors
    /// If the client cannot list them.
    #[track_caller]
    pub fn try_tools(&self) -> Result<Value, Failure> {
        self.begin("tools", json!({})).wait()
    }

    /// Calls a tool.
    ///
    /// # Panics
    /// If no result comes; a tool error is a result.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: &Value) -> ToolResult {
        let pending = self.try_call(tool, arguments);
        pending.unwrap_or_else(|failure| panic!("{tool} {arguments} has no result: {failure:?}"))
    }

    /// Like [`Session::call`].
    ///
    /// # Errors
    /// If the client reports that no result came.
    #[track_caller]
    pub fn try_call(&self, tool: &str, arguments: &Value) -> Result<ToolResult, Failure> {
        self.begin_call(tool, arguments).wait()
    }

    /// Like [`Session::call`], but does not wait for the result.
    #[track_caller]
    pub fn begin_call(&self, tool: &str, arguments: &Value) -> PendingCall {
        PendingCall(self.begin("call", json!({ "tool": tool, "arguments": arguments })))
    }

    /// Subscribes to changes of the tools, and returns what the server acknowledged and the cache hints of the list. Only
    /// the Python SDK's client can.
    #[track_caller]
    #[must_use]
    pub fn listen(&self) -> Value {
        self.begin("listen", json!({})).wait().expect("the client subscribes")
    }

    /// Waits for the first change after [`Session::listen`], and returns its name.
    #[track_caller]
    #[must_use]
    pub fn changed(&self) -> Value {
        self.begin("changed", json!({})).wait().expect("the subscription lasts")
    }

    /// Aborts the calls in progress, and returns how many there were. Only the TypeScript SDK's client can.
    #[track_caller]
    #[must_use]
    pub fn abort(&self) -> u64 {
        let aborted = self.begin("abort", json!({})).wait().expect("the client aborts its calls");
        aborted.as_u64().expect("a number of calls")
    }

    /// The statuses of all HTTP responses in the session, in order.
    #[track_caller]
    #[must_use]
    pub fn statuses(&self) -> Vec<u64> {
        let statuses = self.begin("statuses", json!({})).wait().expect("the client reports its statuses");
        statuses.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// Closes the session.
    #[track_caller]
    pub fn close(self) {
        let _ = self.begin("close", json!({})).wait().unwrap_or_else(|failure| panic!("cannot close: {failure:?}"));
    }

    #[track_caller]
    fn begin(&self, method: &str, mut params: Value) -> Pending {
        params["session"] = self.name.into();
        self.process.begin(method, &params)
    }
}

impl PendingCall {
    /// Waits for the result.
    ///
    /// # Errors
    /// If the client reports that no result came.
    #[track_caller]
    pub fn wait(self) -> Result<ToolResult, Failure> {
        self.0.wait().map(ToolResult::read)
    }
}

impl ToolResult {
    fn read(mut result: Value) -> Self {
        Self {
            is_error: result["isError"] == true,
            structured: result["structuredContent"].take(),
            text: result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Asserts that the tool succeeded, and returns the structured content.
    #[track_caller]
    #[must_use]
    pub fn expect_success(self) -> Value {
        assert!(!self.is_error, "unexpected tool error: {}", self.text);
        self.structured
    }

    /// Asserts that it is a tool error, and returns the JSON in it.
    #[track_caller]
    #[must_use]
    pub fn expect_error(self) -> Value {
        assert!(self.is_error, "expected a tool error: {}", self.text);
        if self.structured.is_null() {
            return serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {}", self.text));
        }
        self.structured
    }
}
