//! The SQLite backend against the storage contract, and what only a backend on disk can get wrong.

mod contract;
