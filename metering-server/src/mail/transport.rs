//! The connection to the SMTP server, and what its errors mean.

use std::error::Error as _;
use std::fmt;
use std::time::Duration;

use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use url::Url;

use crate::config::{SmtpConfig, SmtpTls};

/// Sends messages to the configured server.
pub(super) struct Transport {
    smtp: AsyncSmtpTransport<Tokio1Executor>,
    timeout: Duration,
}

/// A message was not sent.
#[derive(Debug)]
pub(super) struct Unsent {
    /// Whether the same message may be accepted later.
    pub(super) may_pass: bool,
    why: String,
}

impl Transport {
    /// Connects when the first message is sent. `pages` names this service to the server.
    pub(super) fn new(config: &SmtpConfig, pages: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let parameters = || TlsParameters::new_rustls(config.host.clone());
        let tls = match config.tls {
            SmtpTls::Required => Tls::Wrapper(parameters()?),
            // Not `Opportunistic`: an attacker who strips STARTTLS from the server's response must not get the message.
            SmtpTls::Starttls => Tls::Required(parameters()?),
            SmtpTls::None => Tls::None,
        };
        let mut smtp = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&config.host)
            .port(config.port())
            .tls(tls)
            .timeout(Some(config.timeout.duration()));
        if let Some(host) = Url::parse(pages).ok().and_then(|url| url.host_str().map(str::to_owned)) {
            smtp = smtp.hello_name(ClientId::Domain(host));
        }
        if let (Some(username), Some(password)) = (&config.username, config.password()?) {
            smtp = smtp.credentials(Credentials::new(username.clone(), password.as_str().to_owned()));
        }
        Ok(Self { smtp: smtp.build(), timeout: config.timeout.duration() })
    }

    /// Sends a message once.
    pub(super) async fn send(&self, message: Message) -> Result<(), Unsent> {
        match tokio::time::timeout(self.timeout, self.smtp.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Unsent::of(&error)),
            Err(_) => Err(Unsent { may_pass: true, why: format!("no response within {:?}", self.timeout) }),
        }
    }
}

impl Unsent {
    /// Describes an error without the server's text, which often repeats the recipient's address.
    fn of(error: &Error) -> Self {
        if let Some(code) = error.status() {
            return Self { may_pass: error.is_transient(), why: format!("the mail server responded with {code}") };
        }
        let mut why = error.to_string();
        if error.is_response() {
            why = "the mail server's response is not SMTP".to_owned();
        } else if let Some(cause) = error.source().map(ToString::to_string).filter(|cause| !why.contains(cause)) {
            why = format!("{why}: {cause}");
        }
        // The client refuses servers that do not match the configuration, such as those without STARTTLS or a known way
        // to log in. A certificate may be renewed, and a connection may work again.
        Self { may_pass: !error.is_client(), why }
    }
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
