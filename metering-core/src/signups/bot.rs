//! The bot challenge that a signup must pass before it is approved.

use std::fmt;
use std::net::IpAddr;

use async_trait::async_trait;

use crate::clock::Timestamp;

/// Checks solutions to a bot challenge. The implementation decides how the browser gets the challenge.
///
/// Set it in [`SignupSettings::bot_check`](crate::service::SignupSettings).
///
/// ```
/// use std::net::IpAddr;
///
/// use metering_core::Timestamp;
/// use metering_core::signups::{BotCheck, BotCheckError, BotVerdict};
///
/// /// For people who were invited: the solution is a word from the invitation.
/// #[derive(Debug)]
/// struct Password(String);
///
/// #[async_trait::async_trait]
/// impl BotCheck for Password {
///     async fn judge(&self, token: &str, _: Option<IpAddr>, _: Timestamp) -> Result<BotVerdict, BotCheckError> {
///         Ok(if token == self.0 { BotVerdict::Passed { once: None } } else { BotVerdict::Failed })
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let now = Timestamp::from_unix_millis(0);
/// let check = Password("open sesame".to_owned());
/// assert_eq!(check.judge("open sesame", None, now).await?, BotVerdict::Passed { once: None });
/// assert_eq!(check.judge("please", None, now).await?, BotVerdict::Failed);
/// # Ok(())
/// # }
/// ```
#[async_trait]
pub trait BotCheck: Send + Sync + fmt::Debug {
    /// Checks the token that a browser sent. `client` is the browser's address.
    async fn judge(&self, token: &str, client: Option<IpAddr>, now: Timestamp) -> Result<BotVerdict, BotCheckError>;
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BotVerdict {
    /// The solution is correct. If it could be sent again, `once` identifies it, so it counts only once.
    Passed {
        /// The solution's id and the time when its challenge expires; `None` if the challenge's provider prevents
        /// reuse.
        once: Option<(SolutionId, Timestamp)>,
    },
    /// The solution is wrong.
    Failed,
}

/// The id of a solution.
pub type SolutionId = [u8; 32];

/// The check could not be made; it can be retried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bot challenge could not be checked: {0}")]
pub struct BotCheckError(pub String);
