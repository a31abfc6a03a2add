//! Checks the texts that a wallet is asked to sign, so that it never signs anything else.

use std::io::{self, IsTerminal};

use metering_client::ServiceUrl;
use metering_core::chains::Address;

use crate::client::payments::payment::consent::Consent;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::notice;

/// A text to sign, and the data that it must name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The service that asks.
    pub(crate) service: &'a ServiceUrl,
    /// The exact text.
    pub(crate) message: &'a str,
    /// The effect of signing it, in words.
    pub(crate) effect: &'a str,
}

impl Request<'_> {
    /// Rejects a text that does not name all of these, as the protocol requires.
    pub(crate) fn names(&self, parts: &[&str]) -> Result<(), Failure> {
        let text = self.message.to_ascii_lowercase();
        match parts.iter().find(|part| !text.contains(&part.to_ascii_lowercase())) {
            None => Ok(()),
            Some(part) => Err(Failure::Failed(format!(
                "the service asked for a signature of a text that does not name {part}; it was not signed. Tell the \
                service's operator"
            ))),
        }
    }

    /// Shows the text and asks for consent if the text does not name this service. Otherwise, anyone between the client
    /// and another service could get that service's texts signed.
    pub(crate) async fn is_agreed(&self, consent: Consent) -> Result<(), Failure> {
        if names_host(self.message, &host(self.service)) {
            return Ok(());
        }
        notice(&format!("{} asks for a signature of a text that does not name it:\n", self.service));
        notice(&printable(self.message));
        notice("");
        if consent.yes || !io::stdin().is_terminal() {
            // `--yes` is consent to a payment, not to a text that the user has not seen.
            let problem = "it was not signed, because only a person can agree to that: run the command on a terminal, \
                           without --yes, or ask the service's operator to set public_url";
            return Err(Failure::Failed(problem.to_owned()));
        }
        confirm(&format!("{} Sign it?", self.effect)).await
    }
}

/// Whether a text is for this wallet; texts contain addresses in either case.
pub(crate) fn is_for(message: &str, wallet: Address) -> bool {
    message.to_ascii_lowercase().contains(&wallet.to_string())
}

/// A text to sign elsewhere: line breaks stay, other control characters are replaced.
pub(crate) fn printable(message: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    message.chars().map(shown).collect()
}

/// Whether a text names exactly this host: `e.com` is not `api.e.com`, and port 80 is not port 8080. Otherwise, the
/// owner of a host whose name is the end of another's could get that other service's texts signed.
fn names_host(message: &str, host: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '@');
    message.match_indices(host).any(|(start, _)| {
        let before = message[..start].chars().next_back();
        let after = message[start + host.len()..].chars().next();
        !before.is_some_and(belongs) && !after.is_some_and(belongs)
    })
}

fn host(service: &ServiceUrl) -> String {
    let text = service.to_string();
    let rest = text.split_once("://").map_or(text.as_str(), |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WALLET: &str = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed";

    fn request<'a>(service: &'a ServiceUrl, message: &'a str) -> Request<'a> {
        Request { service, message, effect: "It credits a payment." }
    }

    #[test]
    fn message_without_its_purpose_is_not_signed() {
        let service = "https://api.example".parse().unwrap();
        let message = format!("The metering service at https://api.example asks.\nPayer: {WALLET}\nChain: 8453");
        let request = request(&service, &message);
        assert!(request.names(&[&WALLET.to_lowercase(), "8453"]).is_ok());
        let refused = request.names(&["8453", "org_mine"]).unwrap_err();
        assert!(refused.to_string().contains("org_mine"), "{refused}");
        assert!(is_for(&message, WALLET.parse().unwrap()) && !is_for(&message, Address::ZERO));
    }

    #[tokio::test]
    async fn message_of_another_service_is_not_signed_without_consent() {
        let (ours, theirs) = ("http://127.0.0.1:8787".parse().unwrap(), "https://api.example/v1".parse().unwrap());
        let message = "The metering service at https://api.example/v1 asks you to replace the API key.";
        // Tests have no terminal to prompt on.
        let (no, yes) = (Consent { yes: false }, Consent { yes: true });
        assert!(request(&theirs, message).is_agreed(no).await.is_ok());
        assert!(request(&theirs, message).is_agreed(yes).await.is_ok());
        assert!(request(&ours, message).is_agreed(yes).await.is_err());
        assert_eq!(host(&theirs), "api.example");
    }

    #[test]
    fn host_must_match_completely() {
        // host in the text, host that asked, whether they are the same
        let table = [
            ("api.example", "api.example", true),
            ("api.example/v1", "api.example", true),
            ("api.example:8787", "api.example:8787", true),
            ("api.example:8787", "api.example", false),
            ("api.example:8787", "api.example:878", false),
            ("api.example", "i.example", false),
            ("api.example", "example", false),
            ("my-api.example", "api.example", false),
            ("api.example.org", "api.example", false),
            ("127.0.0.11", "127.0.0.1", false),
        ];
        for (named, host, same) in table {
            let message = format!("The metering service at https://{named} asks you to replace the API key.");
            assert_eq!(names_host(&message, host), same, "{named} {host}");
        }
    }

    #[test]
    fn message_is_shown_without_control_characters() {
        assert_eq!(printable("one\n\u{1b}[2Jtwo"), "one\n\u{fffd}[2Jtwo");
    }
}
