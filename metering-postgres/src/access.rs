//! Accounts, their keys, and what proves who owns one: linked wallets and challenges.

pub(crate) mod keys;
