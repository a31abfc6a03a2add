//! The charge path: commits a batch in one transaction, with a cache of the accounts that are charged often.

pub(crate) mod cache;
pub(crate) mod cached_account;
pub(crate) mod cached_keys;
pub(crate) mod commit;
pub(crate) mod generations;
pub(crate) mod holds;
pub(crate) mod inline_text;
pub(crate) mod stored_results;
pub(crate) mod tokens;
pub(crate) mod volumes;
