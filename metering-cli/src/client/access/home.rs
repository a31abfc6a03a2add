//! Where profiles are kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::failure::Failure;

/// Overrides the platform's directory.
const VARIABLE: &str = "METERING_CLIENT_HOME";

/// The directory of the client's files: the platform's configuration directory for `metering`.
#[derive(Debug, Clone)]
pub(crate) struct Home(PathBuf);

impl Home {
    /// Finds the directory; does not create it.
    pub(crate) fn find(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Failure> {
        if let Some(directory) = variable(VARIABLE).filter(|value| !value.is_empty()) {
            return Ok(Self(directory.into()));
        }
        let platform = etcetera::choose_base_strategy()
            .map_err(|_| Failure::Failed(format!("no home directory; set {VARIABLE} to the directory for profiles")))?;
        Ok(Self(platform.config_dir().join("metering")))
    }

    /// The directory of all profiles, which has one directory per profile.
    pub(crate) fn profiles(&self) -> PathBuf {
        self.0.join("profiles")
    }

    /// The directory itself.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}
