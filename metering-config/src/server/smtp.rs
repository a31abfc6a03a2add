//! The SMTP server that mail is sent through.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::ConfigError;
use lettre::message::Mailbox;
use metering_core::access::is_own_machine;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::server::section::section;
use crate::server::text::as_text;
use crate::server::{Secret, Span};

section! {
    /// The SMTP server that mail is sent through. Without this section the service sends no mail.
    pub struct SmtpConfig;

    /// The server's host name.
    host: String,
    /// Its port; by default 465 with `tls = "required"`, 587 with `starttls`, 25 with `none`.
    port: Option<u16>,
    /// How the connection is encrypted.
    tls: SmtpTls = SmtpTls::Starttls,
    /// The user name, if the server requires one.
    username: Option<String>,
    /// The password.
    password: Option<Secret>,
    /// A file with the password, instead of `password`.
    password_file: Option<PathBuf>,
    /// The sender, such as `Acme <hello@acme.example>`. Without a name, the brand's is used.
    from: Option<Sender>,
    /// How long one attempt to send a message may take.
    timeout: Span = Span::seconds(30),
}

/// How connections to the SMTP server are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SmtpTls {
    /// From the first byte.
    Required,
    /// From STARTTLS on, before the password and the message. Without STARTTLS nothing is sent.
    Starttls,
    /// Not at all. Only for a server on this machine.
    None,
}

/// The sender of mail: an address, or a name and an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sender(Mailbox);

/// The text is not a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an address such as hello@acme.example, or Acme <hello@acme.example>")]
pub struct SenderError;

impl SmtpConfig {
    /// The server's port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port.unwrap_or(match self.tls {
            SmtpTls::Required => 465,
            SmtpTls::Starttls => 587,
            SmtpTls::None => 25,
        })
    }

    /// The password, from the configuration or its file. A line break at the end of the file is ignored.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn password(&self) -> Result<Option<Zeroizing<String>>, ConfigError> {
        let Some(file) = &self.password_file else {
            return Ok(self.password.as_ref().map(|secret| Zeroizing::new(secret.expose().to_owned())));
        };
        let unreadable = |error| ConfigError::key("smtp.password_file", format_args!("{}: {error}", file.display()));
        let text = Zeroizing::new(std::fs::read_to_string(file).map_err(unreadable)?);
        let password = text.trim_end_matches(['\r', '\n']);
        if password.is_empty() {
            return Err(ConfigError::key("smtp.password_file", format_args!("{} is empty", file.display())));
        }
        Ok(Some(Zeroizing::new(password.to_owned())))
    }

    /// # Errors
    /// The first key that is missing or does not fit the others.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: &str| Err(ConfigError::key(format!("smtp.{key}"), problem));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        if self.host.is_empty() {
            return invalid("host", "is required: the host name of your SMTP server");
        }
        if !self.host.bytes().all(plain) || self.host.contains("//") {
            return invalid("host", "must be a host name such as smtp.example.com, without a scheme or port");
        }
        if self.port == Some(0) {
            return invalid("port", "must not be 0");
        }
        if self.from.is_none() {
            return invalid("from", "is required: the sender, such as Acme <hello@acme.example>");
        }
        if self.tls == SmtpTls::None && !is_own_machine(&self.host) {
            return invalid(
                "tls",
                "is none, which is allowed only for localhost, 127.0.0.1 and ::1: use starttls or required",
            );
        }
        if self.password.is_some() && self.password_file.is_some() {
            return invalid("password_file", "cannot be used together with smtp.password");
        }
        let has_password = self.password.is_some() || self.password_file.is_some();
        if self.username.is_some() != has_password {
            return invalid(
                "username",
                "and smtp.password (or smtp.password_file) belong together: set both or neither",
            );
        }
        if !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&self.timeout.duration()) {
            return invalid("timeout", "must be 1s to 5m");
        }
        self.password().map(drop)
    }
}

impl Sender {
    /// The mailbox, with `name` if it has no name yet.
    #[must_use]
    pub fn named(&self, name: &str) -> Mailbox {
        let own = self.0.name.clone();
        Mailbox::new(Some(own.unwrap_or_else(|| name.to_owned())), self.0.email.clone())
    }
}

impl FromStr for Sender {
    type Err = SenderError;

    fn from_str(text: &str) -> Result<Self, SenderError> {
        text.parse().map(Self).map_err(|_| SenderError)
    }
}

impl fmt::Display for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

as_text!(Sender);

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Option<String> {
        let config: SmtpConfig = toml::from_str(text).unwrap();
        config.check().err().map(|error| error.to_string())
    }

    #[test]
    fn invalid_values_are_refused_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let empty = format!("username = 'u'\npassword_file = '{}'", file.path().display());
        // configuration after `host` and `from`, the key that the error names
        let table = [
            ("host = ''", "smtp.host"),
            ("host = 'smtp://mail.example'", "smtp.host"),
            ("port = 0", "smtp.port"),
            ("tls = 'none'", "smtp.tls"),
            ("username = 'u'", "smtp.username"),
            ("password = 'p'", "smtp.username"),
            ("username = 'u'\npassword = 'p'\npassword_file = 'f'", "smtp.password_file"),
            ("username = 'u'\npassword_file = '/nowhere/at/all'", "smtp.password_file"),
            (&empty, "smtp.password_file"),
            ("timeout = '500ms'", "smtp.timeout"),
            ("timeout = '10m'", "smtp.timeout"),
        ];
        for (text, key) in table {
            let host = if text.contains("host") { "" } else { "host = 'mail.example'\n" };
            let error = problem(&format!("{host}from = 'a@b.example'\n{text}")).unwrap_or_default();
            assert!(error.contains(key), "{text}: {error}");
        }
        assert!(problem("host = 'mail.example'").unwrap().contains("smtp.from"));
        for text in ["from = 'nobody'", "from = 'a@b.example\\r\\nBcc: c@d.example'", "tls = 'off'", "user = 'u'"] {
            assert!(toml::from_str::<SmtpConfig>(&text.replace("\\r\\n", "\u{d}")).is_err(), "{text}");
        }
    }

    #[test]
    fn ports_follow_from_the_encryption() {
        // encryption, host, port
        let table = [("required", "mail.example", 465), ("starttls", "mail.example", 587), ("none", "127.0.0.1", 25)];
        for (tls, host, port) in table {
            let text = format!("host = '{host}'\nfrom = 'a@b.example'\ntls = '{tls}'");
            assert_eq!(problem(&text), None, "{text}");
            assert_eq!(toml::from_str::<SmtpConfig>(&text).unwrap().port(), port);
        }
        for host in ["localhost", "::1", "127.9.9.9"] {
            assert_eq!(problem(&format!("host = '{host}'\nfrom = 'a@b.example'\ntls = 'none'")), None, "{host}");
        }
    }

    #[test]
    fn the_sender_has_its_own_name_or_the_brands() {
        let named = |text: &str| text.parse::<Sender>().unwrap().named("Acme").to_string();
        assert_eq!(named("hello@acme.example"), "Acme <hello@acme.example>");
        assert_eq!(named("Jo <hello@acme.example>"), "Jo <hello@acme.example>");
    }

    #[test]
    fn passwords_are_read_from_a_file_and_masked() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "correct horse\n").unwrap();
        let from_file = SmtpConfig { password_file: Some(file.path().to_owned()), ..SmtpConfig::default() };
        assert_eq!(from_file.password().unwrap().unwrap().as_str(), "correct horse");
        let inline: SmtpConfig = toml::from_str("password = 'hunter22'").unwrap();
        assert!(!format!("{inline:?}{}", toml::to_string(&inline).unwrap()).contains("hunter22"));
    }
}
