//! Configuration errors, each naming the variable, flag or file key that set the bad value.

/// A configuration error. No message repeats a line of the file, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file or variable cannot be read.
    #[error("cannot read the configuration: {0}")]
    Source(String),
    /// A key is unknown or its value is invalid.
    #[error("configuration key {key}: {problem}")]
    Key {
        /// The key, its parts separated by dots.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// As [`Self::Key`], for a value set by an environment variable.
    #[error("environment variable {variable}: {problem} (configuration key {key})")]
    Variable {
        /// The variable's name.
        variable: String,
        /// The key it sets.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// As [`Self::Key`], for a value set by a flag.
    #[error("--{key}: {problem}")]
    Flag {
        /// The flag, which has the same name as its key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl ConfigError {
    /// An error in a key, before the source that set the key is looked up.
    pub fn key(key: impl Into<String>, problem: impl ToString) -> Self {
        Self::Key { key: key.into(), problem: problem.to_string() }
    }
}

impl From<config::ConfigError> for ConfigError {
    /// Drops the excerpt of the file that the parser quotes: it may hold a secret, or an RPC URL with a key.
    fn from(error: config::ConfigError) -> Self {
        let message = error.to_string();
        let shown = message.lines().filter(|line| {
            let is_number = |text: &str| text.trim().bytes().all(|byte| byte.is_ascii_digit());
            let excerpt = line.split_once('|').is_some_and(|(number, _)| is_number(number));
            !excerpt && !line.trim().is_empty()
        });
        Self::Source(shown.collect::<Vec<_>>().join(": "))
    }
}
