//! Accounts, their keys, and what proves who owns one: linked wallets and challenges.

pub(crate) mod accounts;
pub(crate) mod ended_keys;
pub(crate) mod keys;
