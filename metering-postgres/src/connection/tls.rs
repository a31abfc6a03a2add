//! TLS to the database: which certificates are trusted, and advice for certificate errors.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use metering_core::StoreError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// A TLS connector that trusts the certificates of a file, or those that the system trusts.
pub(crate) fn connector(root_certificates: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let mut roots = RootCertStore::empty();
    match root_certificates {
        Some(file) => {
            let (added, _) = roots.add_parsable_certificates(certificates(file)?);
            if added == 0 {
                let nothing = format!("sslrootcert {}: there is no certificate in this file", file.display());
                return Err(StoreError::Unavailable(nothing.into()));
            }
        }
        None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| StoreError::Unavailable(Box::new(error)))?;
    Ok(MakeRustlsConnect::new(config.with_root_certificates(roots).with_no_client_auth()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, StoreError> {
    let failed = |error: rustls::pki_types::pem::Error| {
        StoreError::Unavailable(format!("sslrootcert {}: {error}", file.display()).into())
    };
    CertificateDer::pem_file_iter(file).map_err(failed)?.collect::<Result<_, _>>().map_err(failed)
}

/// A TLS error, with advice on how to fix it.
#[derive(Debug)]
pub(crate) struct Insecure {
    error: tokio_postgres::Error,
    advice: &'static str,
}

impl Insecure {
    /// Adds advice to an error; returns the error unchanged if there is none.
    pub(crate) fn with_advice(error: tokio_postgres::Error) -> Result<Self, tokio_postgres::Error> {
        match advice(&error) {
            Some(advice) => Ok(Self { error, advice }),
            None => Err(error),
        }
    }
}

impl fmt::Display for Insecure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        if let Some(cause) = self.error.source() {
            write!(f, ": {cause}")?;
        }
        write!(f, "; {}", self.advice)
    }
}

impl Error for Insecure {}

fn advice(error: &tokio_postgres::Error) -> Option<&'static str> {
    if let Some(refusal) = refusal(error) {
        return Some(advice_on(refusal));
    }
    // The driver has no error type for this.
    let unwilling = error.source().is_some_and(|cause| cause.to_string().contains("server does not support TLS"));
    unwilling.then_some("switch TLS on in the database (ssl = on), or set sslmode=disable if the network is trusted")
}

fn advice_on(refusal: &rustls::Error) -> &'static str {
    use CertificateError as Certificate;

    match refusal {
        // `BadSignature` if a trusted certificate has the issuer's name, but a different key.
        rustls::Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
            "name a file with its issuer's certificate in sslrootcert=FILE, or set sslmode=disable if the database is on \
             this machine"
        }
        rustls::Error::InvalidCertificate(
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. },
        ) => "use a host name that the database's certificate is valid for",
        // Some installers make one of X.509 version 1, or use an authority's own certificate.
        rustls::Error::InvalidCertificate(Certificate::Other(_) | Certificate::BadEncoding) => {
            "give the database a certificate of X.509 version 3 that an authority has signed, and name that authority's \
             in sslrootcert=FILE; or set sslmode=disable if the database is on this machine"
        }
        _ => "the database's certificate is not valid",
    }
}

/// The TLS error behind an error, if any. A retry does not help.
pub(crate) fn refusal(error: &tokio_postgres::Error) -> Option<&rustls::Error> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(refusal) = inner.downcast_ref() {
            return Some(refusal);
        }
        // An I/O error does not return the error that it wraps as its source.
        let held = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(refusal) = held.and_then(|held| held.downcast_ref()) {
            return Some(refusal);
        }
        cause = inner.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rustls::OtherError;

    use super::*;

    #[test]
    fn advice_names_the_setting_that_helps() {
        // rustls has no error type for a certificate of version 1, only the text "UnsupportedCertVersion".
        let unsupported = CertificateError::Other(OtherError(Arc::new(io::Error::other("UnsupportedCertVersion"))));
        for (error, settings) in [
            (CertificateError::UnknownIssuer, &["sslrootcert=FILE", "sslmode=disable"][..]),
            (unsupported, &["version 3", "sslrootcert=FILE", "sslmode=disable"]),
            (CertificateError::NotValidForName, &["host name"]),
            (CertificateError::Expired, &["not valid"]),
        ] {
            let advice = advice_on(&rustls::Error::InvalidCertificate(error));
            assert!(settings.iter().all(|setting| advice.contains(setting)), "{advice}");
        }
    }
}
