//! What is wrong with a configuration, named by where it was written: a variable, a flag, or a key of the file.

/// What is wrong with the configuration. No message repeats a line of the file, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file or variable cannot be read.
    #[error("cannot read the configuration: {0}")]
    Source(String),
    /// A key is unknown or its value does not fit.
    #[error("configuration key {key}: {problem}")]
    Key {
        /// The key, dots between its parts.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The same, where an environment variable set it.
    #[error("environment variable {variable}: {problem} (configuration key {key})")]
    Variable {
        /// The variable's name.
        variable: String,
        /// The key that it stands for.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The same, where a flag set it.
    #[error("--{key}: {problem}")]
    Flag {
        /// The flag, which is named as its key.
        key: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl ConfigError {
    /// An error of a key, wherever it was set.
    pub fn key(key: impl Into<String>, problem: impl ToString) -> Self {
        Self::Key { key: key.into(), problem: problem.to_string() }
    }
}

impl From<config::ConfigError> for ConfigError {
    /// Without the line that a parser shows of the file: it may hold a secret, or an RPC URL with a key.
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
