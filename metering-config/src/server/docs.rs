//! The pages at `/docs`: the operator's own guides.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The pages at `/docs`: the operator's own guides.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocsConfig {
    /// A folder of your own guides, Markdown files (`NAME.md`), shown next to those of the service at
    /// `/docs/guides/NAME`.
    pub pages: Option<PathBuf>,
}
