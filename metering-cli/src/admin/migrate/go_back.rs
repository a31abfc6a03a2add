//! `--go-back`: makes a moved store usable again.

use std::io::Write;

use serde::Serialize;

use crate::confirm::confirm;
use crate::database::Origin;
use crate::failure::Failure;
use crate::output::write_json;

#[derive(Serialize)]
struct Document {
    store: String,
    was_moved_to: String,
}

/// Removes the marker. Does not contact the other store: its loss may be the reason for going back.
pub(super) async fn run(from: &Origin, yes: bool, json: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let store = from.shown();
    let Some(moved) = from.moved().await? else {
        return Err(Failure::Conflict(format!("{store} is not marked as moved; there is nothing to undo")));
    };
    if !yes {
        let at = moved.at;
        confirm(&format!("Use {store} again? It does not have what was written to {} since {at}.", moved.to)).await?;
    }
    from.unmark().await?;
    if json {
        write_json(out, &Document { store, was_moved_to: moved.to })?;
    } else {
        writeln!(out, "{store} can be used again. Stop every server that still uses {}.", moved.to)?;
    }
    Ok(out.flush()?)
}
