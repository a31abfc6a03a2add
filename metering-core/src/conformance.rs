//! The storage contract as tests.
