//! What every change of keys does.

/// Draws the `meter.access` of accounts anew: what nodes know of their keys and secrets has changed.
pub(crate) const DRAW_ACCESS: &str = "UPDATE meter SET access = DEFAULT WHERE account = ANY($1)";
