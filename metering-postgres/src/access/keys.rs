//! The step that every change of keys takes.

/// Draws the `meter.access` of accounts anew: their keys and secrets have changed, and nodes must drop cached ones.
pub(crate) const DRAW_ACCESS: &str = "UPDATE meter SET access = DEFAULT WHERE account = ANY($1)";
