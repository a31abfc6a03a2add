//! The operators' console: its URL, and who signs in to it through an OpenID Connect provider.

use std::path::PathBuf;

use metering_core::access::is_own_machine;
use metering_core::operators::Role;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::ConfigError;
use crate::server::section::section;
use crate::server::{List, Secret, WebOrigin};

/// The operators' console.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// The origin under which browsers reach the console, such as `https://admin.example.com`.
    pub url: Option<WebOrigin>,
    /// Signing in through an OpenID Connect provider; without it operators sign in with tokens only.
    pub oidc: Option<OidcConfig>,
}

section! {
    /// Signing in through an OpenID Connect provider.
    pub struct OidcConfig;

    /// The provider's issuer URL, exactly as its metadata and ID tokens state it.
    issuer: String,
    /// The id of the console as a client of the provider.
    client_id: String,
    /// The client's secret.
    client_secret: Option<Secret>,
    /// A file with that secret, instead of `client_secret`.
    client_secret_file: Option<PathBuf>,
    /// The provider's name on the sign-in button.
    name: String = "single sign-on".to_owned(),
    /// The scopes to request besides `openid`.
    scopes: List<String> = ["email".to_owned()].into_iter().collect(),
    /// The claim of ID tokens that lists a person's groups. A dot leads into an object: `realm_access.roles`.
    groups_claim: String = "groups".to_owned(),
    /// Who may sign in, and with which role.
    operators: Vec<OidcOperator>,
}

/// Who may sign in, and with which role: exactly one of `email`, `domain` and `group`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcOperator {
    /// An email address that the provider has verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// The domain of email addresses that the provider has verified.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// A group in the ID token's groups claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Their role.
    pub role: Role,
}

impl OidcConfig {
    /// A person's role; `None` if they may not sign in. The provider must have verified `email`. If several entries
    /// match, the role that allows the most applies.
    #[must_use]
    pub fn role(&self, email: Option<&str>, groups: &[String]) -> Option<Role> {
        let admitted = self.operators.iter().filter(|operator| operator.admits(email, groups));
        admitted.map(|operator| operator.role).max()
    }

    /// # Errors
    /// The first key that is missing or wrong.
    fn check(&self) -> Result<(), ConfigError> {
        let invalid = |key: &str, problem: &str| Err(ConfigError::key(format!("console.oidc.{key}"), problem));
        if !Url::parse(&self.issuer).is_ok_and(|url| is_issuer(&url)) {
            let problem = "must be the provider's https URL without a query, such as https://id.example.com/realms/acme \
                           (http only for this machine)";
            return invalid("issuer", problem);
        }
        if self.client_id.is_empty() {
            return invalid("client_id", "is required: the id that the provider gave the console");
        }
        if self.client_secret.is_none() {
            return invalid(
                "client_secret_file",
                "is required: a file with the secret that the provider gave the console",
            );
        }
        if self.name.trim().is_empty() || self.name.len() > 64 || self.name.chars().any(char::is_control) {
            return invalid("name", "must be one line of 1 to 64 bytes");
        }
        if self.groups_claim.is_empty() {
            return invalid("groups_claim", "must name a claim, such as groups");
        }
        if self.operators.is_empty() {
            let problem =
                "is required: who may sign in, as [[console.oidc.operators]] with email, domain or group, and role";
            return invalid("operators", problem);
        }
        match self.operators.iter().find_map(OidcOperator::problem) {
            Some(problem) => invalid("operators", &problem),
            None => Ok(()),
        }
    }
}

impl OidcOperator {
    fn admits(&self, email: Option<&str>, groups: &[String]) -> bool {
        let is_address = |wanted: &String| email.is_some_and(|email| email.eq_ignore_ascii_case(wanted));
        let domain = email.and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
        let is_domain = |wanted: &String| domain.is_some_and(|domain| domain.eq_ignore_ascii_case(wanted));
        self.email.as_ref().is_some_and(is_address)
            || self.domain.as_ref().is_some_and(is_domain)
            || self.group.as_ref().is_some_and(|wanted| groups.contains(wanted))
    }

    fn problem(&self) -> Option<String> {
        let given = [&self.email, &self.domain, &self.group].into_iter().flatten();
        if given.count() != 1 {
            return Some("must each have exactly one of email, domain and group".to_owned());
        }
        let is_domain = |text: &str| !text.is_empty() && !text.contains(['@', '*', ' ']);
        let is_email =
            |text: &str| text.rsplit_once('@').is_some_and(|(name, domain)| !name.is_empty() && is_domain(domain));
        if let Some(email) = self.email.as_deref().filter(|email| !is_email(email)) {
            return Some(format!("have the email {email:?}, which is not an email address"));
        }
        if let Some(domain) = self.domain.as_deref().filter(|domain| !is_domain(domain)) {
            return Some(format!("have the domain {domain:?}; write example.com, without an at sign or a star"));
        }
        (self.group.as_deref() == Some("")).then(|| "have an empty group".to_owned())
    }
}

impl ConsoleConfig {
    /// `has_address` is whether there is an address for operators.
    ///
    /// # Errors
    /// The first key that is missing or wrong.
    pub(super) fn check(&self, has_address: bool) -> Result<(), ConfigError> {
        let is_web = |url: &WebOrigin| url.as_str().starts_with("https://") || url.as_str().starts_with("http://");
        if !self.url.as_ref().is_none_or(is_web) {
            return Err(ConfigError::key("console.url", "must be an http or https URL"));
        }
        let Some(oidc) = &self.oidc else { return Ok(()) };
        if !has_address {
            return Err(ConfigError::key(
                "admin_listen",
                "is required with [console.oidc]: the console is served there",
            ));
        }
        if self.url.is_none() {
            let problem =
                "is required with [console.oidc]: the URL of the console that the provider redirects people to";
            return Err(ConfigError::key("console.url", problem));
        }
        oidc.check()
    }
}

/// Whether the URL can be an issuer (OpenID Connect Discovery 1.0, section 3). Plain HTTP is allowed for a provider on
/// this machine.
fn is_issuer(url: &Url) -> bool {
    let is_local = || url.scheme() == "http" && url.host_str().is_some_and(is_own_machine);
    let is_encrypted = url.scheme() == "https" || is_local();
    is_encrypted && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATOR: &str = "[[oidc.operators]]\nemail = 'jo@example.com'\nrole = 'manager'\n";

    fn config(keys: &str, operators: &str) -> ConsoleConfig {
        let usual = [
            ("issuer", "'https://id.example.com/realms/acme'"),
            ("client_id", "'console'"),
            ("client_secret", "'s3cret'"),
        ];
        let usual = usual.iter().filter(|(key, _)| !keys.starts_with(&format!("{key} ")));
        let usual: String = usual.map(|(key, value)| format!("{key} = {value}\n")).collect();
        let text = format!("url = 'https://admin.example.com'\n[oidc]\n{usual}{keys}\n{operators}");
        toml::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn wrong_keys_are_named() {
        let problem = |config: &ConsoleConfig| config.check(true).err().map(|error| error.to_string());
        assert_eq!(problem(&config("", OPERATOR)), None);
        assert_eq!(problem(&config("issuer = 'http://127.0.0.1:8080'", OPERATOR)), None);
        // keys, operators, key
        let table = [
            ("issuer = 'http://id.example.com'", OPERATOR, "console.oidc.issuer"),
            ("issuer = 'id.example.com'", OPERATOR, "console.oidc.issuer"),
            ("issuer = 'https://id.example.com?a=b'", OPERATOR, "console.oidc.issuer"),
            ("client_id = ''", OPERATOR, "console.oidc.client_id"),
            ("name = ''", OPERATOR, "console.oidc.name"),
            ("groups_claim = ''", OPERATOR, "console.oidc.groups_claim"),
            ("", "", "console.oidc.operators"),
            ("", "[[oidc.operators]]\nrole = 'viewer'", "console.oidc.operators"),
            ("", "[[oidc.operators]]\nemail = 'a@b.c'\ngroup = 'x'\nrole = 'viewer'", "console.oidc.operators"),
            ("", "[[oidc.operators]]\nemail = 'example.com'\nrole = 'viewer'", "console.oidc.operators"),
            ("", "[[oidc.operators]]\ndomain = '@example.com'\nrole = 'viewer'", "console.oidc.operators"),
            ("", "[[oidc.operators]]\ngroup = ''\nrole = 'viewer'", "console.oidc.operators"),
        ];
        for (keys, operators, key) in table {
            let problem = problem(&config(keys, operators)).unwrap_or_default();
            assert!(problem.contains(key), "{keys} {operators}: {problem}");
        }
        let error = |config: &ConsoleConfig, has_address| config.check(has_address).unwrap_err().to_string();
        assert!(error(&config("", OPERATOR), false).contains("admin_listen"));
        let mut elsewhere = config("", OPERATOR);
        elsewhere.url = None;
        assert!(error(&elsewhere, true).contains("console.url"));
        if let Some(oidc) = &mut elsewhere.oidc {
            elsewhere.url = "https://admin.example.com".parse().ok();
            oidc.client_secret = None;
        }
        assert!(error(&elsewhere, true).contains("console.oidc.client_secret_file"));
    }

    #[test]
    fn the_entry_that_allows_the_most_counts() {
        let operators = "[[oidc.operators]]\ndomain = 'example.com'\nrole = 'viewer'\n\
                         [[oidc.operators]]\nemail = 'jo@example.com'\nrole = 'manager'\n\
                         [[oidc.operators]]\ngroup = 'ops'\nrole = 'manager'\n";
        let config = config("", operators).oidc.unwrap();
        // verified address, groups, role
        let table = [
            (Some("kim@example.com"), &[][..], Some(Role::Viewer)),
            (Some("Jo@Example.com"), &[], Some(Role::Manager)),
            (Some("kim@example.com"), &["ops"], Some(Role::Manager)),
            (None, &["ops"], Some(Role::Manager)),
            (None, &["Ops", "dev"], None),
            (Some("jo@sub.example.com"), &[], None),
            (Some("jo@example.com.evil.example"), &[], None),
            (None, &[], None),
        ];
        for (email, groups, role) in table {
            let groups: Vec<_> = groups.iter().map(|group| (*group).to_owned()).collect();
            assert_eq!(config.role(email, &groups), role, "{email:?} {groups:?}");
        }
    }
}
