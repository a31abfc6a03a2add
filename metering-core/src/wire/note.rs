//! Notes of operators on accounts.

use serde::{Deserialize, Serialize};

/// A note of an operator on an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NoteDocument {
    /// When it was written, as RFC 3339.
    #[cfg_attr(feature = "openapi", schema(format = DateTime))]
    pub at: String,
    /// Its author, as the audit log names them. Only operators are notified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The note.
    pub text: String,
}
