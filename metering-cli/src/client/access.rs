//! Profiles: which service, which account, which key; and the files that keep them. A key never appears on a command
//! line or in full on the screen.

pub(crate) mod accounts;
pub(crate) mod config;
mod current_key;
pub(crate) mod export;
pub(crate) mod home;
pub(crate) mod keys;
pub(crate) mod members;
mod new_key;
pub(crate) mod private_file;
pub(crate) mod profile;
pub(crate) mod recover;
pub(crate) mod rotate;
