//! The keys that sign receipts of requests.

use std::io;
use std::path::Path;

use metering_core::AccountId;
use metering_log::keys::KeyRing;
use zeroize::Zeroizing;

use crate::ConfigError;
use crate::regular_file;
use crate::server::ReceiptsConfig;

const KEY_FILE: &str = "receipts.key_file";
const ALWAYS: &str = "receipts.always";

impl ReceiptsConfig {
    /// The keys; `None` if requests get no receipts. Blocks for as long as the file system does.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn keys(&self) -> Result<Option<KeyRing>, ConfigError> {
        let Some(file) = &self.key_file else { return Ok(None) };
        read_key_ring(file).map(Some).map_err(|problem| ConfigError::key(KEY_FILE, problem))
    }

    /// The accounts whose requests all get a receipt.
    ///
    /// # Errors
    /// When one of them is not an account id.
    pub fn always(&self) -> Result<Vec<AccountId>, ConfigError> {
        let read = |id: &String| {
            id.parse::<AccountId>()
                .map_err(|error| ConfigError::key(ALWAYS, format_args!("{id:?} is not an account: {error}")))
        };
        self.always.iter().map(read).collect()
    }

    /// # Errors
    /// The first key that is missing or wrong.
    pub(super) fn check(&self, has_public_url: bool) -> Result<(), ConfigError> {
        self.currency.as_ref().map_or(Ok(()), |currency| currency.exchange_rates().map(drop))?;
        let always = self.always()?;
        if self.keys()?.is_none() {
            let problem = "needs receipts.key_file: `metering admin receipt-key create` makes one";
            return if always.is_empty() { Ok(()) } else { Err(ConfigError::key(ALWAYS, problem)) };
        }
        let problem = "is required with receipts.key_file: receipts name the service by this URL";
        if has_public_url { Ok(()) } else { Err(ConfigError::key("public_url", problem)) }
    }
}

/// The keys in a file.
///
/// # Errors
/// Names the file and why it cannot be used.
pub fn read_key_ring(file: &Path) -> Result<KeyRing, String> {
    let about = |problem: &dyn std::fmt::Display| format!("{}: {problem}", file.display());
    let bytes = regular_file::read(file).map(Zeroizing::new).map_err(|error| about(&error))?;
    if is_exposed(file).map_err(|error| about(&error))? {
        return Err(about(&"others can read it, or its group can change it; set its mode to 600, or 640"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| about(&"is not text"))?;
    KeyRing::parse([text]).map_err(|error| about(&error))
}

/// The group may read it: service managers and container platforms provide secrets with such modes.
#[cfg(unix)]
fn is_exposed(file: &Path) -> io::Result<bool> {
    Ok(std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(file)?.permissions()) & 0o027 != 0)
}

#[cfg(not(unix))]
fn is_exposed(_: &Path) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use metering_log::keys::PrivateKey;

    use super::*;

    fn problem(text: &str, has_public_url: bool) -> Option<String> {
        let config: ReceiptsConfig = toml::from_str(text).unwrap();
        config.check(has_public_url).err().map(|error| error.to_string())
    }

    #[test]
    fn keys_need_a_private_file_and_a_public_url() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &str, mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            #[cfg(unix)]
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            format!("key_file = '{}'\n", path.display())
        };
        let pem = PrivateKey::from_seed(&[7; 32]).to_pem().unwrap();
        let good = file("good", &pem, 0o600);
        let account = "always = 'org_0123456789abcdefghij'";
        // configuration, whether there is a public URL, what the error says
        let table = [
            (String::new(), false, None),
            (good.clone(), true, None),
            (good.clone() + account, true, None),
            (file("shared", &pem, 0o440), true, None),
            (good.clone(), false, Some("public_url")),
            (file("readable", &pem, 0o604), true, Some("set its mode to 600")),
            (file("writable", &pem, 0o660), true, Some("set its mode to 600")),
            (file("empty", "", 0o600), true, Some("no private key")),
            ("key_file = '/nonexistent/receipts.pem'".to_owned(), true, Some("/nonexistent/receipts.pem")),
            (account.to_owned(), true, Some("receipts.key_file")),
            (good + "always = ['org_1']", true, Some("\"org_1\" is not an account")),
        ];
        for (text, has_public_url, expected) in table {
            let found = problem(&text, has_public_url);
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(expected.is_none_or(|words| found.as_ref().unwrap().contains(words)), "{text}: {found:?}");
        }
    }
}
