//! Free signup: sessions that a person approves in a browser, and the bot challenge before it.
//!
//! A session gives out its account's key once, to the client that opened it.

pub(crate) mod bot;
pub(crate) mod signup;

pub use bot::{BotCheck, BotCheckError, BotVerdict, SolutionId};
pub use signup::{
    MalformedCode, MalformedToken, SessionHash, SessionToken, SessionTokenKind, SignupError, SignupSession, UserCode,
};
