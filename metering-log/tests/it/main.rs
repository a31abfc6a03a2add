//! The formats against vectors of their texts and against other implementations.

mod other_implementations;
mod rfc6962;
mod trees;
mod witness;
