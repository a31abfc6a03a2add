//! API keys: authentication and rotation.

mod authentication;
mod current;
mod rotation;
mod rotation_signatures;
