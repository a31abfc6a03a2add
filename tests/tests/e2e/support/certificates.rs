//! Certificates made for a test.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

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
