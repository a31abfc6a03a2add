//! Merges file, variables and flags, in this order, and remembers which of them set a key.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{Environment, File, FileFormat};
use serde::de::DeserializeOwned;

use crate::error::ConfigError;
use crate::service_links::is_service_link;

const PREFIX: &str = "METERING_";
/// Variables with this prefix belong to the command-line client.
const CLIENT_PREFIX: &str = "METERING_CLIENT_";
/// For these keys, an empty value counts as unset: a store needs a name.
const UNSET_WHEN_EMPTY: [&str; 2] = ["data", "database"];

/// The sources of the configuration: a file, environment variables and flags.
///
/// ```
/// use metering_config::{Sources, StorePlace};
///
/// let variables = [("METERING_DATABASE".into(), "sqlite:a.db".into()), ("HOME".into(), "/root".into())];
/// let place: StorePlace = Sources::new(None, variables)?.read()?;
/// assert_eq!(place.database.map(|url| url.expose().to_owned()).as_deref(), Some("sqlite:a.db"));
/// # Ok::<(), metering_config::ConfigError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Sources {
    file: Option<PathBuf>,
    /// The variables that belong to the configuration, by name.
    variables: HashMap<String, String>,
    /// The names of those variables, by configuration key.
    names: BTreeMap<String, String>,
    flags: Vec<(&'static str, String)>,
    ignored: Vec<String>,
}

impl Sources {
    /// Takes an optional file, and picks from `environment` the variables that belong to the configuration.
    ///
    /// # Errors
    /// When such a variable is not UTF-8.
    pub fn new(
        file: Option<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let mut sources = Self { file, ..Self::default() };
        for (name, value) in environment {
            let Ok(name) = name.into_string() else { continue };
            let upper = name.to_ascii_uppercase();
            if !upper.starts_with(PREFIX) || upper.starts_with(CLIENT_PREFIX) {
                continue;
            }
            let Ok(value) = value.into_string() else {
                return Err(ConfigError::Source(format!("environment variable {name} is not UTF-8")));
            };
            let key = upper[PREFIX.len()..].to_ascii_lowercase().replace("__", ".");
            if is_service_link(&name, &value) {
                sources.ignored.push(name);
            } else if !value.is_empty() || !UNSET_WHEN_EMPTY.contains(&key.as_str()) {
                sources.names.insert(key, name.clone());
                sources.variables.insert(name, value);
            }
        }
        sources.ignored.sort_unstable();
        Ok(sources)
    }

    /// Adds a flag, if it was given. Flags override the other sources and have the same names as their keys.
    #[must_use]
    pub fn flag(mut self, key: &'static str, value: Option<String>) -> Self {
        self.flags.extend(value.map(|value| (key, value)));
        self
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Variables that were ignored because Kubernetes or Docker injected them for a service whose name also starts with
    /// `metering`.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Reads the keys that `T` has. `T` decides what happens to other keys.
    ///
    /// # Errors
    /// When a source cannot be read, or a value is invalid. The error names the source that set it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ConfigError> {
        let variables = Environment::with_prefix(PREFIX.trim_end_matches('_'))
            .prefix_separator("_")
            .separator("__")
            .source(Some(self.variables.clone()));
        let mut merged = config::Config::builder();
        if let Some(file) = &self.file {
            merged = merged.add_source(File::new(&file.to_string_lossy(), FileFormat::Toml));
        }
        merged = merged.add_source(variables);
        for (key, value) in &self.flags {
            merged = merged.set_override(key, value.clone())?;
        }
        serde_path_to_error::deserialize(merged.build()?).map_err(|error| {
            let path = error.path().to_string();
            self.named(ConfigError::key(path, error.into_inner()))
        })
    }

    /// The same error, naming the variable or flag that set its key, if one did.
    #[must_use]
    pub fn named(&self, error: ConfigError) -> ConfigError {
        let ConfigError::Key { key, problem } = error else { return error };
        if self.flags.iter().any(|(flag, _)| *flag == key) {
            return ConfigError::Flag { key, problem };
        }
        match self.variable_of(&key, &problem) {
            Some(variable) => ConfigError::Variable { variable: variable.to_owned(), key, problem },
            None => ConfigError::Key { key, problem },
        }
    }

    /// The variable that set `key`, or that set the unknown field of `key` that `problem` names.
    fn variable_of(&self, key: &str, problem: &str) -> Option<&str> {
        if let Some(name) = self.names.get(key) {
            return Some(name);
        }
        let (_, rest) = problem.split_once("unknown field `")?;
        let (field, _) = rest.split_once('`')?;
        let parent = key.trim_matches('.');
        let mut key = if parent.is_empty() { field.to_owned() } else { format!("{parent}.{field}") };
        if parent == field || parent.ends_with(&format!(".{field}")) {
            key = parent.to_owned();
        }
        let below = format!("{key}.");
        let found = self.names.iter().find(|(set, _)| **set == key || set.starts_with(&below));
        found.map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Keys {
        data: String,
        listen: u16,
        http: Http,
    }

    #[derive(Debug, Default, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    struct Http {
        max_body_bytes: u32,
    }

    fn sources(toml: &str, variables: &[(&str, &str)]) -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("metering.toml");
        std::fs::write(&file, toml).unwrap();
        let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let sources = Sources::new(Some(file), variables).unwrap();
        (folder, sources)
    }

    #[test]
    fn an_error_names_the_variable_or_the_flag_that_caused_it() {
        type Variables = &'static [(&'static str, &'static str)];
        let table: [(&str, Variables, &str); 7] = [
            ("listen = 'x'", &[], "configuration key listen: "),
            ("listen = 1", &[("METERING_LISTEN", "x")], "environment variable METERING_LISTEN: "),
            ("", &[("METERING_HTTP__MAX_BODY_BYTES", "-1")], "environment variable METERING_HTTP__MAX_BODY_BYTES: "),
            ("", &[("METERING_LISTNE", "1")], "environment variable METERING_LISTNE: unknown field"),
            ("", &[("METERING_HTTP__MAX_BODY", "1")], "environment variable METERING_HTTP__MAX_BODY: unknown field"),
            ("", &[("METERING_PORT", "8080")], "environment variable METERING_PORT: unknown field"),
            ("listne = 1", &[("METERING_LISTEN", "1")], "configuration key listne: unknown field"),
        ];
        for (toml, variables, expected) in table {
            let (_folder, sources) = sources(toml, variables);
            let message = sources.read::<Keys>().unwrap_err().to_string();
            assert!(message.starts_with(expected), "{toml} {variables:?}: {message}");
        }
        let (_folder, sources) = sources("", &[("METERING_LISTEN", "1")]);
        let flagged = sources.flag("listen", Some("x".to_owned())).read::<Keys>().unwrap_err();
        assert!(flagged.to_string().starts_with("--listen: "), "{flagged}");
    }

    #[test]
    fn other_variables_are_ignored() {
        let variables = [
            ("METERING_CLIENT_KEY", "x"),
            ("METERING_PORT", "tcp://10.0.0.1:80"),
            ("METERING_SERVICE_HOST", "10.0.0.1"),
            ("METERING_DATA", ""),
            ("PATH", "/bin"),
        ];
        let (_folder, sources) = sources("data = 'kept'", &variables);
        assert_eq!(sources.read::<Keys>().unwrap().data, "kept");
        assert_eq!(sources.ignored(), ["METERING_PORT", "METERING_SERVICE_HOST"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_that_is_not_text_is_named() {
        use std::os::unix::ffi::OsStringExt;
        let broken = OsString::from_vec(vec![0xff]);
        let named = Sources::new(None, [("METERING_LISTEN".into(), broken.clone())]).unwrap_err();
        assert!(named.to_string().contains("METERING_LISTEN is not UTF-8"), "{named}");
        assert!(Sources::new(None, [("OTHER".into(), broken.clone()), (broken, "x".into())]).is_ok());
    }
}
