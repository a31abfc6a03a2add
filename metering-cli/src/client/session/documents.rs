//! A document from the service: parsed for people, and in its original bytes for programs.

use std::io::Write;

use metering_client::{Client, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::json::write_as_sent;

/// A parsed response.
#[derive(Debug)]
pub(crate) struct Document<T> {
    pub(crate) content: T,
    response: Response,
}

impl<T: DeserializeOwned> Document<T> {
    /// Requests `target` from the service.
    ///
    /// # Errors
    /// When the service rejects the request, does not respond, or responds with something else.
    pub(crate) async fn get(client: &Client, target: &str) -> Result<Self, Failure> {
        Self::of(client.get(target).await?)
    }

    /// Parses a response.
    ///
    /// # Errors
    /// When the document is something else.
    pub(crate) fn of(response: Response) -> Result<Self, Failure> {
        Ok(Self { content: response.json()?, response })
    }

    /// Writes the document as the service sent it, or indented on a terminal.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        write_as_sent(out, &self.response.body)
    }
}

/// An account's rate limits; 0 means no limit.
#[derive(Debug, Clone, Copy, Deserialize, serde::Serialize)]
pub(crate) struct Caps {
    requests_per_minute: u64,
    requests_per_day: u64,
}

impl std::fmt::Display for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cap = |requests: u64| if requests == 0 { "no limit".to_owned() } else { requests.to_string() };
        write!(f, "{} per minute, {} per day", cap(self.requests_per_minute), cap(self.requests_per_day))
    }
}
