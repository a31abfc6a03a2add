//! Profiles: each names a service, an account there and its key.

use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use metering_client::ServiceUrl;
use metering_core::ApiKey;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::client::access::home::Home;
use crate::client::access::private_file;
use crate::client::paying::amount::Amount;
use crate::client::paying::tokens::Token;
use crate::failure::Failure;

const FILE: &str = "profile.toml";

/// Longer names are rejected, like all names that are not valid file names on every platform.
const NAME_BYTES_MAX: usize = 64;

/// A profile's name: 1 to 64 of `A-Za-z0-9_-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProfileName(String);

impl ProfileName {
    /// The profile used if none is named.
    pub(crate) const DEFAULT: &str = "default";

    /// Whether commands that name no profile use this one.
    pub(crate) fn is_default(&self) -> bool {
        self.0 == Self::DEFAULT
    }
}

impl FromStr for ProfileName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if text.is_empty() || text.len() > NAME_BYTES_MAX || !text.bytes().all(fits) {
            return Err("must be 1 to 64 letters, digits, hyphens or underscores");
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A profile as it is on disk, and its directory.
#[derive(Debug)]
pub(crate) struct Profile {
    name: ProfileName,
    directory: PathBuf,
    pub(crate) settings: Settings,
}

/// The settings of a profile.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    /// The service's URL.
    pub(crate) url: Option<ServiceUrl>,
    /// The account's API key.
    pub(crate) api_key: Option<ApiKey>,
    /// The account's id.
    pub(crate) org_id: Option<String>,
    /// Limits on payments for calls.
    pub(crate) pay: PaySettings,
}

/// The user's limits on payments without a prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PaySettings {
    /// The maximum to pay in 24 hours.
    pub(crate) daily_limit: Option<Amount>,
    /// Tokens to pay with, in addition to the known ones.
    pub(crate) tokens: Vec<Token>,
}

impl PaySettings {
    /// The maximum to pay in 24 hours: one token, unless the user set another limit.
    pub(crate) fn daily_limit(&self) -> Amount {
        self.daily_limit.unwrap_or(Amount::ONE)
    }
}

/// The file's format. The text contains the key, so it is zeroized, and parse errors are not repeated.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    org_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<Zeroizing<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pay: Option<PayFile>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PayFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    daily_limit: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tokens: Vec<String>,
}

impl Profile {
    /// Reads a profile; one that does not exist yet is empty.
    pub(crate) fn load(home: &Home, name: ProfileName) -> Result<Self, Failure> {
        let directory = home.profiles().join(name.to_string());
        let path = directory.join(FILE);
        let settings = match private_file::read(&path)? {
            None => Settings::default(),
            Some(text) => Settings::read(&text).map_err(|wrong| {
                Failure::Failed(format!("{} is not a profile: {wrong}; fix it or remove it", path.display()))
            })?,
        };
        Ok(Self { name, directory, settings })
    }

    /// The names of all profiles.
    pub(crate) fn names(home: &Home) -> Result<Vec<ProfileName>, Failure> {
        let directory = home.profiles();
        let failed = |error: std::io::Error| Failure::Failed(format!("cannot read {}: {error}", directory.display()));
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_str().and_then(|name| name.parse().ok());
            names.extend(name.filter(|_| entry.path().join(FILE).is_file()));
        }
        names.sort();
        Ok(names)
    }

    /// Saves the settings, readable by their owner only.
    pub(crate) fn save(&self) -> Result<(), Failure> {
        let written = ProfileFile {
            url: self.settings.url.as_ref().map(ToString::to_string),
            org_id: self.settings.org_id.clone(),
            api_key: self.settings.api_key.as_ref().map(|key| Zeroizing::new(key.expose().to_owned())),
            pay: self.settings.pay.to_file(),
        };
        let text = toml::to_string(&written).map(Zeroizing::new);
        let text = text.map_err(|_| Failure::Failed("cannot serialize the profile as TOML".to_owned()))?;
        private_file::write(&self.directory.join(FILE), text.as_bytes())
    }

    /// Removes the whole directory: settings, cursors and everything else.
    pub(crate) fn remove(self) -> Result<(), Failure> {
        let failed = |error| Failure::Failed(format!("cannot remove {}: {error}", self.directory.display()));
        fs::remove_dir_all(&self.directory).map_err(failed)
    }

    pub(crate) const fn name(&self) -> &ProfileName {
        &self.name
    }

    /// Whether it is on disk.
    pub(crate) fn exists(&self) -> bool {
        self.path().is_file()
    }

    /// The settings file.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// Another file of the profile, such as a cursor.
    pub(crate) fn file(&self, name: impl AsRef<Path>) -> PathBuf {
        self.directory.join(name)
    }
}

impl Settings {
    fn read(text: &str) -> Result<Self, &'static str> {
        let written: ProfileFile = toml::from_str(text)
            .map_err(|_| "its keys are url, org_id and api_key, all strings, and the section pay")?;
        let url = written.url.map(|url| url.parse()).transpose();
        let api_key = written.api_key.map(|key| ApiKey::parse(&key)).transpose();
        Ok(Self {
            url: url.map_err(|_| "url is not the URL of a service")?,
            api_key: api_key.map_err(|_| "api_key is not a valid key, or has a typo")?,
            org_id: written.org_id,
            pay: PaySettings::read(written.pay.unwrap_or_default())?,
        })
    }
}

impl PaySettings {
    fn read(written: PayFile) -> Result<Self, &'static str> {
        let daily_limit = written.daily_limit.map(|text| text.parse()).transpose();
        let tokens = written.tokens.iter().map(|text| text.parse()).collect::<Result<_, _>>();
        Ok(Self {
            daily_limit: daily_limit.map_err(|_| "pay.daily_limit is not a decimal number in quotes, above zero")?,
            tokens: tokens.map_err(|_| "pay.tokens is not a list of CHAIN_ID:CONTRACT:DECIMALS")?,
        })
    }

    /// `None` if nothing was set.
    fn to_file(&self) -> Option<PayFile> {
        (*self != Self::default()).then(|| PayFile {
            daily_limit: self.daily_limit.map(|limit| limit.to_string()),
            tokens: self.tokens.iter().map(Token::to_string).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::SystemRandomness;

    fn home(directory: &Path) -> Home {
        Home::find(|_| Some(directory.into())).unwrap()
    }

    fn name(text: &str) -> ProfileName {
        text.parse().unwrap()
    }

    #[test]
    fn profiles_stand_side_by_side_and_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let home = home(directory.path());
        assert_eq!(Profile::names(&home).unwrap(), []);
        let key = ApiKey::generate(&SystemRandomness);
        let mut work = Profile::load(&home, name("work")).unwrap();
        assert!(!work.exists());
        work.settings.api_key = Some(key.clone());
        work.settings.url = Some("https://api.example.com".parse().unwrap());
        work.settings.pay.daily_limit = "2.5".parse().ok();
        work.settings.pay.tokens.extend("1:0x1111111111111111111111111111111111111111:6".parse().ok());
        work.save().unwrap();
        Profile::load(&home, name("home")).unwrap().save().unwrap();
        assert_eq!(Profile::names(&home).unwrap(), [name("home"), name("work")]);
        let again = Profile::load(&home, name("work")).unwrap();
        assert_eq!(again.settings.api_key.as_ref().map(ApiKey::hash), Some(key.hash()));
        assert_eq!((&again.settings.url, &again.settings.pay), (&work.settings.url, &work.settings.pay));
        assert!(!format!("{again:?}").contains(key.expose()));
        again.remove().unwrap();
        assert_eq!(Profile::names(&home).unwrap(), [name("home")]);
    }

    #[test]
    fn limit_that_cannot_be_read_is_no_limit_to_pay_by() {
        for text in ["daily_limit = 5", "daily_limit = \"-1\"", "tokens = [\"USDC\"]", "limit = \"1\""] {
            assert!(Settings::read(&format!("[pay]\n{text}\n")).is_err(), "{text}");
        }
        assert_eq!(Settings::read("").unwrap().pay.daily_limit(), Amount::ONE);
        assert_eq!(Settings::read("[pay]\ndaily_limit = '0.5'").unwrap().pay.daily_limit().to_string(), "0.5");
    }

    #[test]
    fn damaged_profile_is_an_error_without_its_content() {
        let directory = tempfile::tempdir().unwrap();
        let home = home(directory.path());
        for text in ["api_key = \"sk_live_secret\"", "api_key = sk_live_secret", "sk_live_secret = 1", "url = \"x\""] {
            private_file::write(&home.profiles().join("default").join(FILE), text.as_bytes()).unwrap();
            let error = Profile::load(&home, name("default")).unwrap_err().to_string();
            assert!(error.contains("profile.toml") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn profile_names_cannot_escape_the_directory() {
        for bad in ["", ".", "..", "a/b", "a\\b", "ä", &"a".repeat(65)] {
            assert!(bad.parse::<ProfileName>().is_err(), "{bad}");
        }
    }
}
