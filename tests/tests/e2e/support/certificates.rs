//! Certificates made for a test.

use std::path::PathBuf;

use metering_tests::webhooks::Identity;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

/// A server on this machine that clients trust if they trust `authority`. The files are deleted when it is dropped.
pub(crate) struct Loopback {
    /// The authority's certificate, a PEM file.
    pub(crate) authority: PathBuf,
    /// A certificate for `localhost` and 127.0.0.1.
    pub(crate) identity: Identity,
    _folder: TempDir,
}

impl Loopback {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let issuer = authority("authority.example");
        let (certificate, key) = certificate(&issuer, &["localhost", "127.0.0.1"]);
        let authority = write("authority.pem", issuer.pem());
        let identity = Identity {
            certificate: write("certificate.pem", certificate.pem()),
            key: write("key.pem", key.serialize_pem()),
        };
        Self { authority, identity, _folder: folder }
    }
}

/// A certificate authority.
pub(crate) fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut about = CertificateParams::new(vec![name.to_owned()]).unwrap();
    about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    about.distinguished_name.push(DnType::CommonName, name);
    CertifiedIssuer::self_signed(about, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of that authority for these names, and its key.
pub(crate) fn certificate(
    authority: &CertifiedIssuer<'static, KeyPair>,
    names: &[&str],
) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let about = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    (about.signed_by(&key, authority).unwrap(), key)
}
