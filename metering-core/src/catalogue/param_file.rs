//! Reads the parameters of a route from a catalogue file.

use serde_json::value::RawValue;

use super::object::{Object, UnknownKeys, documentation};
use super::problem::Problems;
use crate::catalogue::route::{Param, ParamLocation, ParamType};

const PARAM_KEYS: [&str; 7] = ["name", "in", "type", "array", "required", "description", "example"];

/// Reads `params` of a route.
pub(super) fn read(endpoint: &Object<'_>, unknown: UnknownKeys) -> Result<Vec<Param>, Problems> {
    let mut problems = Problems::default();
    let params = problems.all(endpoint.list("params")?.iter().map(|param| read_param(param, unknown)));
    problems.or(|| params)
}

fn read_param(param: &Object<'_>, unknown: UnknownKeys) -> Result<Param, Problems> {
    let mut problems = Problems::default();
    problems.keep(param.only(&PARAM_KEYS, unknown));
    let name = problems.keep(param.require("name"));
    let location: Option<ParamLocation> = problems.keep(param.require("in"));
    let kind: Option<ParamType> = problems.keep(param.require("type"));
    let array = problems.keep(param.get("array"));
    if let (Some(Some(true)), Some(ParamLocation::Path)) = (array, location) {
        problems.add(format!("{}: a parameter of the path does not repeat", param.location_of("array")));
    }
    let required = problems.keep(param.get("required"));
    let description = problems.keep(documentation(param.get("description"), unknown));
    let example = kind.and_then(|kind| problems.keep(documentation(param_example(param, kind), unknown)));
    problems.or(|| {
        Some(Param {
            name: name?,
            location: location?,
            kind: kind?,
            array: array?.unwrap_or_default(),
            required: required?.unwrap_or_default(),
            description: description?.unwrap_or_default(),
            example: example?,
        })
    })
}

/// The example of a parameter, as written in a request: the text of a JSON string, or a number or boolean as the file
/// has it.
fn param_example(param: &Object<'_>, kind: ParamType) -> Result<Option<String>, String> {
    let Some(value) = param.get::<&RawValue>("example")?.filter(|value| value.get() != "null") else { return Ok(None) };
    let text = serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned());
    match kind.problem_with(&text) {
        Some(problem) => Err(format!("{}: {problem}", param.location_of("example"))),
        None => Ok(Some(text)),
    }
}
