//! A document of the service: what is read of it for people, and its bytes as they came for programs.

use std::io::Write;

use metering_client::{Answer, Client};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// An answer, read.
#[derive(Debug)]
pub(crate) struct Document<T> {
    pub(crate) content: T,
    answer: Answer,
}

impl<T: DeserializeOwned> Document<T> {
    /// Asks the service for `target`.
    ///
    /// # Errors
    /// When the service refuses, does not answer, or answers with another document.
    pub(crate) async fn get(client: &Client, target: &str) -> Result<Self, Failure> {
        let answer = client.get(target).await?;
        Ok(Self { content: answer.json()?, answer })
    }

    /// Writes the document as the service sent it, and the line's end if it has none.
    pub(crate) fn write_json(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let body = &self.answer.body;
        out.write_all(body)?;
        if !body.ends_with(b"\n") {
            writeln!(out)?;
        }
        Ok(())
    }
}

/// The caps on an account's requests; 0 means no cap.
#[derive(Debug, Clone, Copy, Deserialize, serde::Serialize)]
pub(crate) struct Caps {
    requests_per_minute: u64,
    requests_per_day: u64,
}

impl std::fmt::Display for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cap = |requests: u64| if requests == 0 { "no cap".to_owned() } else { requests.to_string() };
        write!(f, "{} a minute, {} a day", cap(self.requests_per_minute), cap(self.requests_per_day))
    }
}
