//! HTTPS on the listening address.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The certificate of `listen`. Both files are read again when they change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate chain, a PEM file: the server's certificate first, then those that issued it.
    pub certificate: PathBuf,
    /// Its private key, a PEM file (PKCS#8, PKCS#1 or SEC1).
    pub key: PathBuf,
}
