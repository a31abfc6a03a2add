//! Going back to a store that was moved, on purpose.

use std::io::Write;

use serde::Serialize;

use crate::confirm::confirm;
use crate::database::Origin;
use crate::failure::Failure;
use crate::output::json_line;

#[derive(Serialize)]
struct Document {
    store: String,
    was_moved_to: String,
}

/// Takes the mark away. The other store is not asked: it may be gone, which may be why.
pub(super) async fn run(from: &Origin, yes: bool, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let store = from.shown();
    let Some(moved) = from.moved().await? else {
        return Err(Failure::Conflict(format!("{store} is not marked as moved; there is nothing to go back from")));
    };
    if !yes {
        let at = moved.at;
        confirm(&format!("Use {store} again? What was written to {} since {at} is not in it.", moved.to)).await?;
    }
    from.unmark().await?;
    if json {
        json_line(out, &Document { store, was_moved_to: moved.to })?;
    } else {
        writeln!(out, "{store} can be used again. Stop whatever still uses {}.", moved.to)?;
    }
    Ok(out.flush()?)
}
