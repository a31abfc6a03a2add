//! Reaching the database: the URL, the pool, TLS, the host that accepts writes, and how statements run.
//!
//! Nothing here depends on the meaning of tables, and nothing waits without a time limit.

pub(crate) mod connect;
pub(crate) mod hosts;
pub(crate) mod session;
pub(crate) mod settings;
pub(crate) mod start;
pub(crate) mod tls;
pub(crate) mod value;
pub(crate) mod wait;
