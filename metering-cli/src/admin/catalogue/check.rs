//! `catalogue check`: everything that is wrong with a catalogue file.

use std::io::Write;
use std::path::PathBuf;

use bytes::Bytes;
use clap::Args;
use http::Method;
use metering_admin::wire::CatalogueCheckDocument;
use metering_client::Client;
use metering_config::{CatalogueFileError, read_catalogue};
use metering_core::catalogue::CatalogueProblem;
use serde::Serialize;

use super::indented::indented;
use crate::admin::administrator::refused;
use crate::admin::session::Session;
use crate::failure::Failure;
use crate::output::{Format, write_json};
use crate::table::printable;

/// Report everything that is wrong with a catalogue file. Exit code 1 if anything is.
#[derive(Debug, Args)]
#[command(after_help = "\
The rules are those of the server's start. A server also refuses paths that it uses itself, such as /docs; with --server,
they are checked too.

Examples:
  metering admin catalogue check routes.json
  metering admin catalogue check routes.json --json
  metering admin catalogue check routes.json --explain > written-out.json
  metering admin catalogue check routes.json --server https://admin.example.com")]
pub(crate) struct CheckArgs {
    /// The catalogue file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print the catalogue with its presets and models written out, if it is valid. The result is a catalogue too.
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    #[command(flatten)]
    format: Format,
}

#[derive(Debug, Serialize)]
struct Document {
    valid: bool,
    /// How many routes it has; 0 if it is not valid.
    routes: usize,
    problems: Vec<Problem>,
}

#[derive(Debug, Serialize)]
struct Problem {
    /// Empty for the file itself, and for a server's message.
    place: String,
    route: Option<String>,
    problem: String,
    /// The whole result, for people.
    #[serde(skip)]
    line: String,
}

impl Problem {
    fn of(problem: &CatalogueProblem) -> Self {
        Self {
            place: problem.place.clone(),
            route: problem.route.clone(),
            problem: problem.problem.clone(),
            line: problem.to_string(),
        }
    }
}

impl CheckArgs {
    pub(crate) async fn run(self, session: &Session, out: &mut dyn Write) -> Result<(), Failure> {
        let (catalogue, mut problems) = match read_catalogue(&self.file) {
            Ok(catalogue) => (Some(catalogue), Vec::new()),
            Err(CatalogueFileError::Invalid { cause, .. }) => {
                (None, cause.problems().iter().map(Problem::of).collect())
            }
            Err(error) => return Err(Failure::Failed(error.to_string())),
        };
        if let (Some(catalogue), Some(client)) = (&catalogue, session.server()) {
            problems.extend(refused_by_server(client, catalogue.json().to_owned()).await?);
        }
        if let (Some(catalogue), true, true) = (&catalogue, self.explain, problems.is_empty()) {
            out.write_all(indented(catalogue.json()).as_bytes())?;
            return Ok(out.flush()?);
        }
        let routes = catalogue.map_or(0, |catalogue| catalogue.routes().len());
        let document = Document { valid: problems.is_empty(), routes, problems };
        let printed = self.write(&document, out).and_then(|()| Ok(out.flush()?));
        // Even if printing failed: an invalid file must not end in exit code 0 because of a closed pipe.
        match document.problems.len() {
            0 => printed,
            1 => Err(Failure::Failed(format!("{} has 1 problem", self.file.display()))),
            many => Err(Failure::Failed(format!("{} has {many} problems", self.file.display()))),
        }
    }

    fn write(&self, document: &Document, out: &mut dyn Write) -> Result<(), Failure> {
        if self.format.json {
            return write_json(out, document);
        }
        for problem in &document.problems {
            writeln!(out, "{}", printable(&problem.line))?;
        }
        if document.valid {
            let noun = if document.routes == 1 { "route" } else { "routes" };
            writeln!(out, "{} is valid: {} {noun}.", self.file.display(), document.routes)?;
        }
        Ok(())
    }
}

/// Why a server cannot serve a valid catalogue, if there is a reason.
async fn refused_by_server(client: &Client, text: String) -> Result<Option<Problem>, Failure> {
    let check = async {
        let body = Bytes::from(text);
        client.open(Method::POST, "/admin/catalogue/check", Some(body)).await?.read_to_end().await
    };
    let document: CatalogueCheckDocument = check.await.map_err(refused)?.json()?;
    let problem = |problem: String| Problem { place: String::new(), route: None, line: problem.clone(), problem };
    Ok(document.problem.map(problem))
}
