//! Writes responses about keys.

use std::io::Write;

use metering_client::Response;
use metering_core::wire::KeyResponse;

use crate::failure::Failure;
use crate::keys::document;

/// Writes the key of a response, below `headline` or as the service sent it.
pub(super) fn write_key(out: &mut dyn Write, json: bool, headline: &str, response: Response) -> Result<(), Failure> {
    let KeyResponse { data } = response.json()?;
    if json { write_json(out, &response) } else { document::write(out, headline, &data) }
}

/// Writes a response as the service sent it, and a line break if it does not end with one.
pub(super) fn write_json(out: &mut dyn Write, response: &Response) -> Result<(), Failure> {
    out.write_all(&response.body)?;
    if !response.body.ends_with(b"\n") {
        writeln!(out)?;
    }
    Ok(())
}
