//! Telling people from programs: a check that a signup must pass before it is approved.

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::clock::Timestamp;

/// A bot challenge.
///
/// What it hands to the browser, and how, is its own business; this is how an answer is judged.
#[async_trait]
pub trait BotCheck: Send + Sync + fmt::Debug {
    /// Judges what a browser sent, and who sent it.
    async fn judge(&self, token: &str, client: Option<IpAddr>, now: Timestamp) -> Result<BotVerdict, BotCheckError>;
}

/// What a check says of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotVerdict {
    /// It is good. Where it could be sent again, `once` names it, so that it counts once.
    Passed {
        /// The solution and when its challenge is over; `None` where somebody else sees to it.
        once: Option<(SolutionId, Timestamp)>,
    },
    /// It is not.
    Failed,
}

/// What identifies a solution of a challenge.
pub type SolutionId = [u8; 32];

/// A check that could not be made. Retryable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bot challenge could not be checked: {0}")]
pub struct BotCheckError(pub String);
