//! Whether the server would start with this configuration.

use metering_config::read_catalogue;
use metering_config::server::{Loaded, load};

use super::findings::Findings;
use crate::database::DatabaseArgs;
use crate::failure::Failure;

const CHECK: &str = "configuration";
const CATALOGUE: &str = "catalogue";

/// The configuration, if it can be used.
///
/// # Errors
/// When an argument is not UTF-8.
pub(super) fn check(database: &DatabaseArgs, findings: &mut Findings) -> Result<Option<Loaded>, Failure> {
    let arguments = database.server_arguments()?;
    let loaded = match load(&arguments, std::env::vars_os()) {
        Ok(loaded) => loaded,
        Err(error) => {
            findings.problem(CHECK, error, "correct this key; the server does not start, and a reload changes nothing");
            return Ok(None);
        }
    };
    match &arguments.config {
        Some(file) => findings.ok(CHECK, file.display()),
        None => findings.ok(CHECK, "no file (--config): defaults and variables"),
    }
    if let Some(file) = &loaded.config.catalogue {
        match read_catalogue(file) {
            Ok(catalogue) => {
                findings.ok(CATALOGUE, format_args!("{}: {} routes", file.display(), catalogue.routes().len()));
                if let Some(problem) = loaded.config.unserved_route(&catalogue) {
                    let advice = "correct the name in the catalogue, or add the upstream to the configuration";
                    findings.problem(CATALOGUE, problem, advice);
                }
            }
            Err(problem) => {
                let advice = format!("`metering admin catalogue check {}` lists all errors", file.display());
                findings.problem(CATALOGUE, problem, advice);
            }
        }
    }
    Ok(Some(loaded))
}
