//! The server's part of free signup: the bot challenge.

pub(crate) mod bot;
