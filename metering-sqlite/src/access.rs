//! Accounts with their keys, and what proves who owns one: linked wallets and challenges.

pub(crate) mod accounts;
pub(crate) mod ended_keys;
pub(crate) mod imports;
pub(crate) mod key_tree;
pub(crate) mod keys;
