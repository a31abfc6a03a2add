//! The section `[log]`: logging, and the log of every posting.

use std::path::{Path, PathBuf};

use metering_core::events::WebhookUrl;
use metering_log::note::{SignatureKind, VerifierKey};
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::server::log_keys::LogKeys;
use crate::server::read_key_ring;

const KEY_FILE: &str = "log.key_file";
const PREVIOUS_KEY_FILE: &str = "log.previous_key_file";
const WITNESSES: &str = "log.witnesses";
const REQUIRED: &str = "log.required_witnesses";

/// The maximum number of witnesses.
const MAX: usize = 16;

/// Logging to standard error, and the log of every posting.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// A level or a filter of `tracing-subscriber`, such as `info` or `metering_server=debug`.
    pub filter: String,
    /// `text` or `json`.
    pub format: LogFormat,
    /// The keys that sign the log of postings, as `metering admin log init` makes them: the last private key signs, and
    /// all public keys are published. The server keeps the last signed checkpoint next to the file, so it must be able
    /// to write in its folder. Without it, this server appends nothing to the log. Needs `public_url`.
    pub key_file: Option<PathBuf>,
    /// The key file before that one, while the key is being rotated, as `metering admin log rotate` says: its last
    /// private key signs too, and readers with either verifier key accept checkpoints.
    pub previous_key_file: Option<PathBuf>,
    /// Whether this server serves the log of postings.
    pub public: bool,
    /// How many witnesses must have cosigned a checkpoint before it is published.
    pub required_witnesses: usize,
    /// The witnesses that cosign checkpoints.
    pub witnesses: Vec<WitnessConfig>,
}

/// A witness (C2SP `tlog-witness`).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WitnessConfig {
    /// Its name in the server's own log.
    pub name: String,
    /// Its verifier key.
    pub vkey: String,
    /// Its submission prefix: checkpoints are posted to `add-checkpoint` below this URL.
    pub url: String,
}

/// A witness that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogWitness {
    /// Its name in the server's own log.
    pub name: String,
    /// The key that verifies its cosignatures.
    pub key: VerifierKey,
    /// The URL that checkpoints are posted to.
    pub url: WebhookUrl,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            filter: "info".to_owned(),
            format: LogFormat::Text,
            key_file: None,
            previous_key_file: None,
            public: true,
            required_witnesses: 0,
            witnesses: Vec::new(),
        }
    }
}

impl LogConfig {
    /// The keys of the log of postings; `None` if this process appends nothing to it. Blocks for as long as the file
    /// system does.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn keys(&self) -> Result<Option<LogKeys>, ConfigError> {
        let read = |file: Option<&Path>, key: &str| {
            file.map(read_key_ring).transpose().map_err(|problem| ConfigError::key(key, problem))
        };
        let current = read(self.key_file.as_deref(), KEY_FILE)?;
        let previous = read(self.previous_key_file.as_deref(), PREVIOUS_KEY_FILE)?;
        let wrong = |problem: &str| Err(ConfigError::key(PREVIOUS_KEY_FILE, problem));
        match (current, previous) {
            (None, None) => Ok(None),
            (None, Some(_)) => wrong("needs log.key_file: during a rotation, the keys of both files sign"),
            (Some(current), Some(previous)) if current.signing().public() == previous.signing().public() => {
                wrong("has the same key as log.key_file; `metering admin log rotate` makes a file with a new one")
            }
            (Some(current), previous) => Ok(Some(LogKeys::new(current, previous))),
        }
    }

    /// The key files.
    pub fn key_files(&self) -> impl Iterator<Item = &Path> {
        self.key_file.iter().chain(&self.previous_key_file).map(PathBuf::as_path)
    }

    /// The witnesses.
    ///
    /// # Errors
    /// When one of them has no name, verifier key or URL that can be used.
    pub fn checked_witnesses(&self) -> Result<Vec<LogWitness>, ConfigError> {
        self.witnesses.iter().map(WitnessConfig::checked).collect()
    }

    /// # Errors
    /// The first key that is missing or wrong.
    pub(super) fn check(&self, has_public_url: bool) -> Result<(), ConfigError> {
        let witnesses = self.checked_witnesses()?;
        if witnesses.len() > MAX {
            let problem = format!("has {} witnesses; at most {MAX} are allowed", witnesses.len());
            return Err(ConfigError::key(WITNESSES, problem));
        }
        for (index, witness) in witnesses.iter().enumerate() {
            let same = |other: &LogWitness| other.name == witness.name || other.key == witness.key;
            if witnesses[..index].iter().any(same) {
                let problem = format!("has {:?}, or its vkey, twice: a witness counts once", witness.name);
                return Err(ConfigError::key(WITNESSES, problem));
            }
        }
        if self.required_witnesses > witnesses.len() {
            let problem = format!("is {}, more than the {} of {WITNESSES}", self.required_witnesses, witnesses.len());
            return Err(ConfigError::key(REQUIRED, problem));
        }
        let Some(keys) = self.keys()? else {
            let problem = "needs log.key_file: only a process that signs the log can have it cosigned";
            return if witnesses.is_empty() { Ok(()) } else { Err(ConfigError::key(WITNESSES, problem)) };
        };
        let own = keys.published();
        if let Some(witness) = witnesses.iter().find(|witness| own.contains(&witness.key.key())) {
            let problem =
                format!("has a key of the log itself, that of {:?}: a log cannot be its own witness", witness.name);
            return Err(ConfigError::key(WITNESSES, problem));
        }
        let problem = "is required with log.key_file: readers of the log find it under this URL";
        if has_public_url { Ok(()) } else { Err(ConfigError::key("public_url", problem)) }
    }
}

impl WitnessConfig {
    fn checked(&self) -> Result<LogWitness, ConfigError> {
        let Self { name, vkey, url } = self;
        let invalid = |key: &str, problem: &dyn std::fmt::Display| {
            Err(ConfigError::key(WITNESSES, format_args!("{key} of {name:?}: {problem}")))
        };
        if name.trim().is_empty() {
            return invalid("the name", &"must not be empty");
        }
        let key = match vkey.parse::<VerifierKey>() {
            Ok(key) if key.kind() == SignatureKind::Cosignature => key,
            Ok(_) => return invalid("the vkey", &"is that of a log; witnesses have keys of cosignature/v1"),
            Err(error) => return invalid("the vkey", &error),
        };
        if url.contains(['?', '#']) {
            return invalid("the url", &"must have no query and no fragment: add-checkpoint is appended to its path");
        }
        match WebhookUrl::parse_trusted(&format!("{}/add-checkpoint", url.trim_end_matches('/'))) {
            Ok(url) => Ok(LogWitness { name: name.clone(), key, url }),
            Err(_) => {
                invalid("the url", &"must be an http(s) URL such as https://witness.example.com, without credentials")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use metering_log::keys::PrivateKey;
    use metering_log::note::{Cosigner, KeyName, NoteSigner};

    use super::*;

    fn witness(name: &str, seed: u8, url: &str) -> String {
        let key = Cosigner::new(KeyName::new("example.com/w").unwrap(), PrivateKey::from_seed(&[seed; 32]));
        format!("[[witnesses]]\nname = '{name}'\nvkey = '{}'\nurl = '{url}'\n", key.verifier())
    }

    #[test]
    fn each_key_that_does_not_fit_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.pem");
        std::fs::write(&path, &*PrivateKey::from_seed(&[7; 32]).to_pem().unwrap()).unwrap();
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let file = format!("key_file = '{}'\n", path.display());
        let same = format!("previous_{file}");
        let (a, b) = (witness("a", 1, "https://w.example.com/api/"), witness("b", 2, "http://127.0.0.1:8400"));
        let log_key = NoteSigner::new(KeyName::new("w").unwrap(), PrivateKey::from_seed(&[1; 32]));
        let of_log = format!("[[witnesses]]\nname = 'a'\nvkey = '{}'\nurl = 'https://w'\n", log_key.verifier());
        // configuration, whether there is a public URL, what the error says
        let table = [
            (String::new(), false, None),
            ("public = false".to_owned(), false, None),
            (file.clone(), true, None),
            (format!("{file}required_witnesses = 2\n{a}{b}"), true, None),
            (file.clone(), false, Some("public_url: is required")),
            ("key_file = '/nonexistent/log.pem'".to_owned(), true, Some("log.key_file: /nonexistent/log.pem")),
            (a.clone(), true, Some("needs log.key_file")),
            (same.clone(), true, Some("log.previous_key_file: needs log.key_file")),
            (format!("{file}{same}"), true, Some("log.previous_key_file: has the same key")),
            (format!("{file}previous_key_file = '/nonexistent/old.pem'\n"), true, Some("/nonexistent/old.pem")),
            (format!("{file}required_witnesses = 2\n{a}"), true, Some("log.required_witnesses: is 2, more than the 1")),
            (format!("{file}{a}{a}"), true, Some("\"a\", or its vkey, twice")),
            (format!("{file}{}", witness("a", 7, "https://w")), true, Some("a log cannot be its own witness")),
            (format!("{file}{a}{}", witness("c", 1, "https://c")), true, Some("\"c\", or its vkey, twice")),
            (format!("{file}{}", witness(" ", 1, "https://c")), true, Some("must not be empty")),
            (format!("{file}{}", witness("a", 1, "w.example.com")), true, Some("the url of \"a\": must be an http(s)")),
            (format!("{file}{}", witness("a", 1, "https://w?x")), true, Some("must have no query")),
            (format!("{file}{of_log}"), true, Some("is that of a log")),
            (format!("{file}{}", a.replace("vkey = '", "vkey = 'x")), true, Some("the vkey of \"a\"")),
        ];
        for (text, has_public_url, expected) in table {
            let config: LogConfig = toml::from_str(&text).unwrap();
            let found = config.check(has_public_url).err().map(|error| error.to_string());
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(expected.is_none_or(|words| found.as_ref().unwrap().contains(words)), "{text}: {found:?}");
        }
    }

    #[test]
    fn checkpoints_are_posted_below_the_submission_prefix() {
        for url in ["https://w.example.com/api", "https://w.example.com/api/"] {
            let config: LogConfig = toml::from_str(&witness("a", 1, url)).unwrap();
            let [witness] = &config.checked_witnesses().unwrap()[..] else { panic!("one witness") };
            assert_eq!(witness.url.as_str(), "https://w.example.com/api/add-checkpoint");
        }
    }
}
