//! The certificate in use, and its replacement when its files change.
//!
//! Connections keep the certificate of their handshake. A pair of files that cannot be used never replaces one that
//! can: programs that renew certificates write one file after the other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use crate::config::{CertificateFiles, ConfigError, TlsConfig};
use crate::http::Shutdown;
use crate::operations::metrics;

/// How often the files are read again. They are small, and their modification times say little: a renewal may keep
/// them, and a link may change its target.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Reading two small files takes no longer, unless their file system does not respond.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The certificate that new connections get.
#[derive(Debug)]
pub(crate) struct Certificates {
    current: RwLock<Arc<CertifiedKey>>,
    seen: Mutex<Seen>,
}

/// The files, and what was in them when they were last read.
#[derive(Debug)]
struct Seen {
    files: TlsConfig,
    digest: [u8; 32],
}

/// A certificate that can be used, and is not used yet.
#[derive(Debug)]
pub(crate) struct Checked {
    certified: Arc<CertifiedKey>,
    seen: Seen,
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, or do not belong together.
    pub(super) fn new(files: &TlsConfig) -> Result<Self, ConfigError> {
        let Checked { certified, seen } = Self::check(files)?;
        Ok(Self { current: RwLock::new(certified), seen: Mutex::new(seen) })
    }

    /// Reads and checks a pair of files, without using it yet.
    ///
    /// # Errors
    /// When they cannot be read, or do not belong together.
    pub(crate) fn check(files: &TlsConfig) -> Result<Checked, ConfigError> {
        let contents = CertificateFiles::read(files)?;
        let certified = Arc::new(contents.certified()?);
        Ok(Checked { certified, seen: Seen { files: files.clone(), digest: contents.digest() } })
    }

    /// Shows this certificate to new connections. Returns whether it is another one than before.
    pub(crate) fn replace(&self, checked: Checked) -> bool {
        let mut seen = self.seen();
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = current.cert != checked.certified.cert;
        *current = checked.certified;
        *seen = checked.seen;
        changed
    }

    /// Reads the files again until shutdown, and uses them when they have changed.
    pub(crate) async fn watch(self: Arc<Self>, shutdown: Shutdown) {
        loop {
            if let Some(expiry) = self.expiry() {
                metrics::certificate_expiry(expiry);
            }
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {}
                () = shutdown.cancelled() => return,
            }
            let certificates = Arc::clone(&self);
            // Reading files may block, possibly forever on a mount that does not respond.
            let mut refresh = tokio::task::spawn_blocking(move || certificates.refresh());
            let refreshed = tokio::select! {
                refreshed = &mut refresh => refreshed,
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(READ_TIMEOUT) => {
                    tracing::error!("the certificate's files cannot be read: their file system does not respond; keeping the certificate");
                    tokio::select! {
                        refreshed = &mut refresh => refreshed,
                        () = shutdown.cancelled() => return,
                    }
                }
            };
            if let Err(error) = refreshed {
                tracing::error!(%error, "could not read the certificate's files again");
            }
        }
    }

    /// Uses the files if they have changed. If they cannot be used, logs why, once for each change.
    fn refresh(&self) {
        // Not locked while it reads, which may block.
        let files = self.seen().files.clone();
        let contents = CertificateFiles::read(&files);
        let digest = contents.as_ref().map_or([0; 32], CertificateFiles::digest);
        let mut seen = self.seen();
        if digest == seen.digest || files != seen.files {
            return;
        }
        seen.digest = digest;
        match contents.and_then(|contents| contents.certified()) {
            Ok(certified) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
                tracing::info!(certificate = %seen.files.certificate.display(), "new connections get the new certificate");
            }
            Err(error) => tracing::error!(%error, "the new certificate cannot be used; keeping the old one"),
        }
    }

    /// When the first certificate of the chain in use expires, as a Unix time.
    fn expiry(&self) -> Option<Duration> {
        let current = Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner));
        let read = current.cert.iter().filter_map(|der| Certificate::from_der(der).ok());
        read.map(|certificate| certificate.tbs_certificate.validity.not_after.to_unix_duration()).min()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn pair(name: &str) -> (String, String) {
        let issued = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
        (issued.cert.pem(), issued.signing_key.serialize_pem())
    }

    fn files(folder: &TempDir, certificate: &str, key: &str) -> TlsConfig {
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("certificate.pem"), certificate).unwrap();
        std::fs::write(path("key.pem"), key).unwrap();
        TlsConfig { certificate: path("certificate.pem"), key: path("key.pem") }
    }

    #[test]
    fn unusable_pairs_are_refused_with_the_file_that_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let ((one, its_key), (_, other_key)) = (pair("one.example"), pair("two.example"));
        // certificate, key, what the error says
        let table = [
            (one.as_str(), its_key.as_str(), None),
            (&one, &other_key, Some("key.pem: is not the key of the certificate in")),
            (&one, &one, Some("key.pem: has no private key in PEM form")),
            (&its_key, &its_key, Some("certificate.pem: has no certificate in PEM form")),
            ("", &its_key, Some("certificate.pem: has no certificate in PEM form")),
            (&one, "", Some("key.pem: has no private key in PEM form")),
        ];
        for (certificate, key, problem) in table {
            let refused = Certificates::check(&files(&folder, certificate, key)).err().map(|error| error.to_string());
            match (problem, refused) {
                (None, None) => {}
                (Some(problem), Some(refused)) => {
                    assert!(refused.contains(problem), "{refused}");
                    assert!(!refused.contains("BEGIN"), "{refused}");
                }
                (problem, refused) => panic!("{problem:?} {refused:?}"),
            }
        }
        // Opening a pipe would block until it gets a writer.
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let pipe = TlsConfig { certificate: pipe, key: folder.path().join("key.pem") };
        assert!(Certificates::check(&pipe).unwrap_err().to_string().ends_with(": is not a regular file"));
        let missing = TlsConfig { certificate: "/nowhere/c.pem".into(), key: "/nowhere/k.pem".into() };
        assert!(Certificates::check(&missing).unwrap_err().to_string().contains("/nowhere/c.pem: No such file"));
    }

    #[test]
    fn changed_files_are_used_once_they_belong_together() {
        let folder = tempfile::tempdir().unwrap();
        let ((one, its_key), (two, other_key)) = (pair("one.example"), pair("two.example"));
        let certificates = Certificates::new(&files(&folder, &one, &its_key)).unwrap();
        let shown = || certificates.current.read().unwrap().cert.clone();
        let first = shown();
        let _ = files(&folder, &two, &its_key);
        certificates.refresh();
        assert_eq!(shown(), first, "the key is still the old one");
        let _ = files(&folder, &two, &other_key);
        certificates.refresh();
        assert_ne!(shown(), first);
        std::fs::remove_file(folder.path().join("key.pem")).unwrap();
        certificates.refresh();
        assert_ne!(shown(), first, "a missing file changes nothing");
    }
}
