//! The operator's own pages next to the guides.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The operator's own pages next to the guides.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocsConfig {
    /// A folder of Markdown files (`NAME.md`), each shown at `/docs/guides/NAME`; by default there are none.
    pub pages: Option<PathBuf>,
}
