//! The context of every client command: the profile, its service and the key.

pub(crate) mod documents;
pub(crate) mod follow_up;
pub(crate) mod interruption;
pub(crate) mod json_line;
pub(crate) mod options;
pub(crate) mod percent;

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use metering_client::{Client, HttpTransport, ServiceUrl, Transport};
use metering_core::{ApiKey, ClientSource};

use crate::client::access::home::Home;
use crate::client::access::profile::{Profile, ProfileName};
use crate::failure::Failure;
use crate::output::notice;

/// Where the server listens by default.
const DEFAULT_URL: &str = "http://127.0.0.1:8787";

const KEY_VARIABLE: &str = "METERING_CLIENT_API_KEY";
const ALLOW_HTTP_VARIABLE: &str = "METERING_CLIENT_ALLOW_HTTP";

/// How long to wait while the service makes no progress. Claims wait for confirmations, up to 45 seconds by default.
const READ_TIMEOUT: Duration = Duration::from_secs(90);

/// The profile and its service.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProfileArgs {
    /// The profile to use.
    #[arg(
        long,
        value_name = "NAME",
        env = "METERING_CLIENT_PROFILE",
        default_value = ProfileName::DEFAULT,
        help_heading = "Client"
    )]
    profile: ProfileName,
    /// The service's URL, for this run only; a profile's key is sent to the profile's own service only.
    #[arg(long, value_name = "URL", env = "METERING_CLIENT_URL", help_heading = "Client")]
    url: Option<ServiceUrl>,
}

/// One run of a client command.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) profile: Profile,
    url: ServiceUrl,
    key: Option<ApiKey>,
    transport: Arc<HttpTransport>,
    is_http_allowed: bool,
}

impl ProfileArgs {
    /// Reads the profile and the environment; nothing is sent yet.
    pub(crate) fn open(&self) -> Result<Session, Failure> {
        follow_up::set_profile(&self.profile);
        self.open_with(|name| std::env::var_os(name))
    }

    /// The profile on disk, without the environment.
    pub(crate) fn profile(&self) -> Result<Profile, Failure> {
        follow_up::set_profile(&self.profile);
        Profile::load(&Home::find(|name| std::env::var_os(name))?, self.profile.clone())
    }

    fn open_with(&self, variable: impl Fn(&str) -> Option<OsString>) -> Result<Session, Failure> {
        let profile = Profile::load(&Home::find(&variable)?, self.profile.clone())?;
        let default = || DEFAULT_URL.parse().expect("the default URL is valid");
        let home_url = profile.settings.url.clone().unwrap_or_else(default);
        let url = self.url.clone().unwrap_or_else(|| home_url.clone());
        let given = variable(KEY_VARIABLE).filter(|value| !value.is_empty());
        let key = match given {
            Some(text) => Some(read_key(&text)?),
            // A key belongs to the service that issued it; no other service may see it.
            None => profile.settings.api_key.clone().filter(|_| url == home_url),
        };
        let allowed = variable(ALLOW_HTTP_VARIABLE).is_some_and(|value| value == "1");
        let transport = transport_to(&url, allowed)?;
        Ok(Session { profile, url, key, transport, is_http_allowed: allowed })
    }
}

impl Session {
    /// The service's URL.
    pub(crate) const fn url(&self) -> &ServiceUrl {
        &self.url
    }

    /// A client without a key, for requests that need none.
    pub(crate) fn anonymous(&self) -> Client {
        let transport: Arc<HttpTransport> = Arc::clone(&self.transport);
        Client::new(transport, ClientSource::Cli)
    }

    /// The transport to the service.
    pub(crate) fn transport(&self) -> Arc<dyn Transport> {
        Arc::<HttpTransport>::clone(&self.transport)
    }

    /// The transport to another service.
    pub(crate) fn transport_to(&self, url: &ServiceUrl) -> Result<Arc<dyn Transport>, Failure> {
        let transport: Arc<dyn Transport> = transport_to(url, self.is_http_allowed)?;
        Ok(transport)
    }

    /// A client over this transport, with the account's key if there is one. The transport must lead to the
    /// service.
    pub(crate) fn client_over(&self, transport: Arc<dyn Transport>) -> Client {
        let client = Client::new(transport, ClientSource::Cli);
        match &self.key {
            Some(key) => client.with_key(key.clone()),
            None => client,
        }
    }

    /// A client with the account's key.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(self.anonymous().with_key(self.key()?.clone()))
    }

    /// The account's key.
    pub(crate) fn key(&self) -> Result<&ApiKey, Failure> {
        self.key.as_ref().ok_or_else(|| {
            let elsewhere = self.profile.settings.api_key.is_some();
            let why = if elsewhere { "the profile's key belongs to another service" } else { "the profile has no key" };
            Failure::Unauthorized(format!(
                "no API key for {}: {why}; get one with `metering signup` or `metering signup-pay`, \
                 store one with `metering config set api-key`, or set {KEY_VARIABLE}",
                self.url
            ))
        })
    }

    /// A profile to store a new key in; it must not have one.
    pub(crate) fn empty_profile(&self, name: ProfileName) -> Result<Profile, Failure> {
        let profile = Profile::load(&Home::find(|name| std::env::var_os(name))?, name)?;
        if profile.settings.api_key.is_some() {
            let problem = format!("profile {} has a key, which would be lost: choose another name", profile.name());
            return Err(Failure::Conflict(problem));
        }
        Ok(profile)
    }

    /// Stores the service's URL in a profile that has none, once something was started there, so that the same command
    /// can continue without naming the service again.
    pub(crate) fn remember_service(&mut self) -> Result<(), Failure> {
        let settings = &mut self.profile.settings;
        if settings.url.is_some() || settings.api_key.is_some() {
            return Ok(());
        }
        settings.url = Some(self.url.clone());
        self.profile.save()
    }

    /// Stores a new key of the service in the profile, before anything else can go wrong.
    pub(crate) fn keep(&mut self, key: ApiKey, org_id: Option<String>) -> Result<(), Failure> {
        self.profile.settings.url = Some(self.url.clone());
        self.profile.settings.api_key = Some(key.clone());
        if org_id.is_some() {
            self.profile.settings.org_id = org_id;
        }
        self.key = Some(key);
        self.profile.save()?;
        if std::env::var_os(KEY_VARIABLE).is_some_and(|value| !value.is_empty()) {
            notice(&format!("{KEY_VARIABLE} is set and overrides the profile's new key: unset it or change it."));
        }
        Ok(())
    }
}

fn transport_to(url: &ServiceUrl, is_http_allowed: bool) -> Result<Arc<HttpTransport>, Failure> {
    if url.is_exposed() && !is_http_allowed {
        return Err(Failure::Usage(format!(
            "{url} is plain HTTP to another machine, where keys can be read in transit; use https://, \
             or set {ALLOW_HTTP_VARIABLE}=1 on a network that you trust"
        )));
    }
    let transport = HttpTransport::new(url.clone(), READ_TIMEOUT);
    transport.map(Arc::new).map_err(|error| Failure::Failed(error.to_string()))
}

fn read_key(text: &OsString) -> Result<ApiKey, Failure> {
    let invalid = |problem: &dyn std::fmt::Display| Failure::Usage(format!("{KEY_VARIABLE}: {problem}"));
    let text = text.to_str().ok_or_else(|| invalid(&"it is not UTF-8"))?;
    ApiKey::parse(text.trim()).map_err(|error| invalid(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::SystemRandomness;

    struct Scene {
        home: tempfile::TempDir,
        key: ApiKey,
    }

    impl Scene {
        /// A profile `default` for https://home.example with a key.
        fn new() -> Self {
            let scene = Self { home: tempfile::tempdir().unwrap(), key: ApiKey::generate(&SystemRandomness) };
            let home = Home::find(|_| Some(scene.home.path().into())).unwrap();
            let mut profile = Profile::load(&home, "default".parse().unwrap()).unwrap();
            profile.settings.url = Some("https://home.example".parse().unwrap());
            profile.settings.api_key = Some(scene.key.clone());
            profile.save().unwrap();
            scene
        }

        fn open(&self, url: Option<&str>, variables: &[(&str, &str)]) -> Result<Session, Failure> {
            let args = ProfileArgs { profile: "default".parse().unwrap(), url: url.map(|url| url.parse().unwrap()) };
            args.open_with(|name| {
                let home = ("METERING_CLIENT_HOME", self.home.path().to_str().unwrap());
                let found = variables.iter().copied().chain([home]).find(|variable| variable.0 == name);
                found.map(|variable| variable.1.into())
            })
        }
    }

    #[test]
    fn a_profiles_key_goes_to_its_own_service_only() {
        let scene = Scene::new();
        assert_eq!(scene.open(None, &[]).unwrap().key().unwrap().hash(), scene.key.hash());
        let same = scene.open(Some("https://home.example/"), &[]).unwrap();
        assert!(same.key().is_ok());
        let elsewhere = scene.open(Some("https://other.example"), &[]).unwrap();
        let error = elsewhere.key().unwrap_err();
        assert!(matches!(&error, Failure::Unauthorized(text) if text.contains("another service")), "{error}");
    }

    #[test]
    fn the_environments_key_wins_and_is_never_repeated() {
        let scene = Scene::new();
        let other = ApiKey::generate(&SystemRandomness);
        let session = scene.open(Some("https://other.example"), &[(KEY_VARIABLE, other.expose())]).unwrap();
        assert_eq!(session.key().unwrap().hash(), other.hash());
        let error = scene.open(None, &[(KEY_VARIABLE, "sk_live_mistyped")]).unwrap_err();
        assert!(!error.to_string().contains("mistyped"), "{error}");
    }

    #[test]
    fn keys_are_sent_over_plain_http_only_if_allowed() {
        let scene = Scene::new();
        let url = Some("http://far.example");
        assert!(matches!(scene.open(url, &[]), Err(Failure::Usage(_))));
        assert!(scene.open(url, &[(ALLOW_HTTP_VARIABLE, "1")]).is_ok());
        assert!(scene.open(Some("http://127.0.0.1:1"), &[]).is_ok());
    }
}
