//! API keys: authentication and rotation.

mod authentication;
mod rotation;
mod rotation_signatures;
