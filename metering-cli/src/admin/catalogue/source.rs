//! Catalogue files, and the catalogue that they are compared with.

use std::fmt;
use std::path::{Path, PathBuf};

use clap::Args;
use metering_admin::Administration;
use metering_config::read_catalogue;
use metering_core::Catalogue;
use serde::Deserialize;

use crate::admin::administrator::refused;
use crate::admin::session::Session;
use crate::failure::Failure;

/// The catalogue in force.
#[derive(Debug, Args)]
pub(super) struct WithArgs {
    /// The file of the catalogue in force. By default, the one served by the server that --server names, the price
    /// version in force (`rehearse`), or the one in the configuration (`catalogue`).
    #[arg(long, value_name = "FILE")]
    with: Option<PathBuf>,
}

/// A catalogue and where it is from.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) catalogue: Catalogue,
}

/// The configuration key that names the server's catalogue file; all other keys are ignored.
#[derive(Debug, Deserialize)]
struct Configured {
    catalogue: Option<PathBuf>,
}

impl WithArgs {
    /// The catalogue in force, if known.
    pub(super) async fn read(&self, session: &Session) -> Result<Option<Source>, Failure> {
        if let Some(file) = &self.with {
            return read(file).map(Some);
        }
        if let Some(client) = session.server() {
            let text = client.get("/admin/catalogue").await.map_err(refused)?.body;
            let text = std::str::from_utf8(&text).map_err(|error| Failure::Failed(error.to_string()))?;
            let catalogue = Catalogue::from_published_json(text);
            let catalogue = catalogue.map_err(|error| Failure::Failed(format!("the server's catalogue: {error}")))?;
            return Ok(Some(Source { name: "the catalogue that the server serves".to_owned(), catalogue }));
        }
        let Configured { catalogue } = session.sources().read()?;
        catalogue.as_deref().map(read).transpose()
    }

    /// The same for a store, which has a price version once a server has used it.
    pub(super) async fn read_or(
        &self,
        session: &Session,
        administration: &Administration,
    ) -> Result<Option<Source>, Failure> {
        if self.with.is_none()
            && let Some(text) = administration.catalogue_in_force().await?
        {
            let catalogue = Catalogue::from_published_json(&text);
            let catalogue =
                catalogue.map_err(|error| Failure::Failed(format!("the price version in force: {error}")))?;
            return Ok(Some(Source { name: "the price version in force".to_owned(), catalogue }));
        }
        self.read(session).await
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A valid catalogue file.
pub(super) fn read(file: &Path) -> Result<Source, Failure> {
    let catalogue = read_catalogue(file).map_err(|error| Failure::Failed(error.to_string()))?;
    Ok(Source { name: file.display().to_string(), catalogue })
}
