//! The keys with which a service signs receipts and statements: fetched from it, or read from a saved file.

use std::fs::{self, File};
use std::io::{self, Read};

use clap::Args;
use metering_client::calls::receipts::GetReceiptKeys;
use metering_client::{Client, ServiceUrl};
use metering_core::ClientSource;
use metering_core::wire::call::Call;
use metering_log::keys::JwkSet;

use crate::client::session::ProfileArgs;
use crate::failure::Failure;

/// The source of the keys.
#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    #[command(flatten)]
    profile: ProfileArgs,
    /// The keys: a file with a JWK set, or the URL of the service; by default those of the profile's service.
    #[arg(long, value_name = "FILE|URL")]
    keys: Option<String>,
}

/// Public keys, and their source.
pub(super) struct ServiceKeys {
    pub(super) set: JwkSet,
    /// The document that contains them.
    pub(super) text: String,
    /// The file or the URL.
    pub(super) from: String,
    /// `None` for a file.
    service: Option<ServiceUrl>,
}

impl KeyArgs {
    pub(super) async fn read(&self) -> Result<ServiceKeys, Failure> {
        let (text, service) = match self.keys.as_deref() {
            Some(url) if url.contains("://") => {
                let url = url.strip_suffix(GetReceiptKeys::PATH).unwrap_or(url);
                let url =
                    url.parse::<ServiceUrl>().map_err(|error| Failure::Usage(format!("--keys: a URL {error}")))?;
                let transport = self.profile.open()?.transport_to(&url)?;
                (fetch(&Client::new(transport, ClientSource::Cli)).await?, Some(url))
            }
            Some(file) => {
                let text = fs::read_to_string(file);
                (text.map_err(|error| Failure::Failed(format!("cannot read {file}: {error}")))?, None)
            }
            None => {
                let session = self.profile.open()?;
                (fetch(&session.anonymous()).await?, Some(session.url().clone()))
            }
        };
        let set = JwkSet::parse(&text).map_err(|error| Failure::Failed(format!("cannot read the keys: {error}")))?;
        let from = service.as_ref().map_or_else(|| self.keys.clone().unwrap_or_default(), ToString::to_string);
        Ok(ServiceKeys { set, text, from, service })
    }
}

impl ServiceKeys {
    /// A service's keys verify only its own receipts and statements: it could sign others in any service's name.
    pub(super) fn check_issuer(&self, what: &str, issuer: &str) -> Result<(), Failure> {
        let Some(service) = self.service.as_ref().map(ToString::to_string) else { return Ok(()) };
        if issuer.parse::<ServiceUrl>().is_ok_and(|issuer| issuer.to_string() == service) {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "the {what} says that it is from {issuer}, but the keys are those of {service}; verify it with --keys \
             {issuer}, or with a file of keys that you trust"
        )))
    }
}

/// A file, or standard input for `-`, and its name for messages.
pub(super) fn open(file: &str) -> Result<(Box<dyn Read>, &str), Failure> {
    if file == "-" {
        return Ok((Box::new(io::stdin()), "standard input"));
    }
    let opened = File::open(file).map_err(|error| Failure::Failed(format!("cannot read {file}: {error}")))?;
    Ok((Box::new(opened), file))
}

async fn fetch(client: &Client) -> Result<String, Failure> {
    let body = client.call::<GetReceiptKeys>(&(), &()).await?.body;
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_service_verify_nothing_of_another() {
        let keys = |url: Option<&str>| ServiceKeys {
            set: JwkSet::default(),
            text: String::new(),
            from: String::new(),
            service: url.map(|url| url.parse().unwrap()),
        };
        // source of the keys, issuer, accepted
        let table = [
            (None, "https://api.example.com", true),
            (Some("https://api.example.com/"), "https://api.example.com", true),
            (Some("https://api.example.net"), "https://api.example.com", false),
            (Some("http://api.example.com"), "https://api.example.com", false),
            (Some("https://api.example.com"), "", false),
        ];
        for (service, issuer, is_fine) in table {
            assert_eq!(keys(service).check_issuer("receipt", issuer).is_ok(), is_fine, "{service:?} {issuer}");
        }
    }
}
