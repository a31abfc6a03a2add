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

/// A tool that is being called.
#[derive(Debug)]
#[must_use = "what became of the call is to be looked at"]
pub struct Called(Pending);

/// What a tool gave back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// Whether it is a tool error, which agents are shown.
    pub is_error: bool,
    /// The structured content; null when there is none.
    pub structured: Value,
    /// The text of the first content.
    pub text: String,
}

impl Session {
    pub(super) fn new(process: Arc<Process>, name: u64) -> Self {
        Self { process, name }
    }

    /// Every tool there is, as the server describes it.
    ///
    /// # Panics
    /// When the client cannot list them.
    #[track_caller]
    #[must_use]
    pub fn tools(&self) -> Vec<Value> {
        let listed = self.try_tools().unwrap_or_else(|failure| panic!("the tools cannot be listed: {failure:?}"));
        listed.as_array().expect("tools are a list").clone()
    }

    /// As [`Session::tools`].
    ///
    /// # Errors
    /// When the client cannot list them.
    #[track_caller]
    pub fn try_tools(&self) -> Result<Value, Failure> {
        self.begin("tools", json!({})).wait()
    }

    /// Calls a tool.
    ///
    /// # Panics
    /// When no result comes; a tool error is one.
    #[track_caller]
    pub fn call(&self, tool: &str, arguments: &Value) -> ToolResult {
        let called = self.try_call(tool, arguments);
        called.unwrap_or_else(|failure| panic!("{tool} {arguments} has no result: {failure:?}"))
    }

    /// As [`Session::call`].
    ///
    /// # Errors
    /// When the client says that no result came.
    #[track_caller]
    pub fn try_call(&self, tool: &str, arguments: &Value) -> Result<ToolResult, Failure> {
        self.begin_call(tool, arguments).wait()
    }

    /// As [`Session::call`], and does not wait for the result.
    #[track_caller]
    pub fn begin_call(&self, tool: &str, arguments: &Value) -> Called {
        Called(self.begin("call", json!({ "tool": tool, "arguments": arguments })))
    }

    /// The statuses of all HTTP answers that the session has met, in their order.
    ///
    /// # Panics
    /// When the client does not say.
    #[track_caller]
    #[must_use]
    pub fn statuses(&self) -> Vec<u64> {
        let statuses = self.begin("statuses", json!({})).wait().expect("the client counts");
        statuses.as_array().into_iter().flatten().filter_map(Value::as_u64).collect()
    }

    /// Ends it in good order.
    ///
    /// # Panics
    /// When the client cannot.
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

impl Called {
    /// The result.
    ///
    /// # Errors
    /// When the client says that none came.
    ///
    /// # Panics
    /// When the client says nothing for long.
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

    /// Holds it to be what the tool is for, and returns the structured content.
    ///
    /// # Panics
    /// When it is an error.
    #[track_caller]
    #[must_use]
    pub fn expect_good(self) -> Value {
        assert!(!self.is_error, "a tool error: {}", self.text);
        self.structured
    }

    /// Holds it to be a tool error, and returns the JSON that it carries.
    ///
    /// # Panics
    /// When it is none.
    #[track_caller]
    #[must_use]
    pub fn expect_error(self) -> Value {
        assert!(self.is_error, "no tool error: {}", self.text);
        if self.structured.is_null() {
            return serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error} in {}", self.text));
        }
        self.structured
    }
}
