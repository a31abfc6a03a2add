//! Why the assets of the pages cannot be built. Only a change of the embedded files can cause it.

use crate::pages::module::ModuleError;

/// The embedded files are inconsistent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AssetError {
    /// A reference to a file that does not exist.
    #[error("{from} refers to {name}, which is not an asset")]
    Unknown {
        /// The referring file.
        from: String,
        /// The missing file.
        name: String,
    },
    /// Files that refer to each other in a cycle cannot be hashed, and modules could not run one after the other.
    #[error("the assets refer to each other in a cycle through {0}")]
    Circle(String),
    /// A text file is not valid UTF-8.
    #[error("{0} is not text")]
    NotText(String),
    /// A module has a form that cannot be joined.
    #[error("{name}, line {line}: {problem}")]
    Module {
        /// The module.
        name: String,
        /// Where.
        line: usize,
        /// What is wrong.
        problem: &'static str,
    },
    /// A module imports a name that does not exist.
    #[error("{by} imports {name} from {from}, which does not export it")]
    NotExported {
        /// The importing module.
        by: String,
        /// The name.
        name: String,
        /// The module without it.
        from: String,
    },
}

impl AssetError {
    pub(super) fn module(name: &str, ModuleError { line, problem }: ModuleError) -> Self {
        Self::Module { name: name.to_owned(), line, problem }
    }
}
