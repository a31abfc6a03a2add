//! The contents of the files of `[tls]`.

use std::fmt;
use std::io;
use std::path::Path;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use sha3::{Digest, Sha3_256};
use zeroize::Zeroizing;

use crate::ConfigError;
use crate::regular_file;
use crate::server::TlsConfig;

/// The contents of a certificate file and its key file.
pub struct CertificateFiles {
    files: TlsConfig,
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

impl CertificateFiles {
    /// Reads both files. Blocks for as long as the file system does.
    ///
    /// # Errors
    /// When one cannot be read, or is not a regular file: a pipe would block until it has a writer.
    pub fn read(files: &TlsConfig) -> Result<Self, ConfigError> {
        let read = |key: &str, file: &Path| {
            let cannot = |error: io::Error| ConfigError::key(key, format_args!("{}: {error}", file.display()));
            regular_file::read(file).map_err(cannot)
        };
        let certificate = read("tls.certificate", &files.certificate)?;
        Ok(Self { files: files.clone(), certificate, key: Zeroizing::new(read("tls.key", &files.key)?) })
    }

    /// The chain and its key, after checking that the key belongs to the first certificate.
    ///
    /// # Errors
    /// When one of them cannot be used, or they do not belong together.
    pub fn certified(&self) -> Result<CertifiedKey, ConfigError> {
        let files = &self.files;
        let unusable = |key: &str, file: &Path, problem: &dyn std::fmt::Display| {
            ConfigError::key(key, format_args!("{}: {problem}", file.display()))
        };
        let of_certificate = |problem: &dyn std::fmt::Display| unusable("tls.certificate", &files.certificate, problem);
        let of_key = |problem: &dyn std::fmt::Display| unusable("tls.key", &files.key, problem);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.map_err(|error| of_certificate(&error))?;
        if chain.is_empty() {
            return Err(of_certificate(&"has no certificate in PEM form"));
        }
        // The parser's errors could quote the file.
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.map_err(|_| of_key(&"has no private key in PEM form, or an encrypted one"))?;
        CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                of_key(&format_args!("is not the key of the certificate in {}", files.certificate.display()))
            }
            rustls::Error::InvalidCertificate(_) => of_certificate(&error),
            error => of_key(&error),
        })
    }

    /// A digest of both, to notice changes.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        let mut digest = Sha3_256::new();
        digest.update(self.certificate.len().to_be_bytes());
        digest.update(&self.certificate);
        digest.update(&self.key);
        digest.finalize().into()
    }
}

impl fmt::Debug for CertificateFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateFiles").field("files", &self.files).finish_non_exhaustive()
    }
}
