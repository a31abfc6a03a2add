//! Writes responses about keys.

use std::io::Write;

use metering_client::Response;
use metering_core::wire::KeyResponse;

use crate::failure::Failure;
use crate::json::write_as_sent;
use crate::keys::document;

/// Writes the key of a response, below `headline` or as the service sent it.
pub(super) fn write_key(out: &mut dyn Write, json: bool, headline: &str, response: Response) -> Result<(), Failure> {
    let KeyResponse { data } = response.json()?;
    if json { write_as_sent(out, &response.body) } else { document::write(out, headline, &data) }
}
