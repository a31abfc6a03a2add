//! Reads a route's template: its errors, on its own and against the declared parameters.

use std::collections::BTreeSet;

use super::nearest::nearest;
use super::path::{RequestPath, TargetError};
use super::problem::Problems;
use super::route::{Param, ParamLocation};
use super::template::TemplateSegment;

pub(super) fn check_template(template: &str, params: &[Param]) -> Result<(), Problems> {
    let literal = template.replace(['{', '}'], "");
    match RequestPath::parse(&literal) {
        Ok(path) if path.as_str() == literal => {}
        Ok(_) | Err(TargetError::NoLeadingSlash) => return Err("the path is not in normal form".to_owned().into()),
        Err(error) => return Err(error.to_string().into()),
    }
    let mut declared: BTreeSet<_> =
        params.iter().filter(|param| param.location == ParamLocation::Path).map(|param| param.name.as_str()).collect();
    let names: BTreeSet<_> = params.iter().map(|param| param.name.as_str()).collect();
    let mut problems = Problems::default();
    if names.len() != params.len() {
        problems.add("two parameters have the same name");
    }
    for segment in TemplateSegment::of(template) {
        match segment {
            TemplateSegment::Literal("") => problems.add("the path has an empty segment"),
            TemplateSegment::Param { name, .. } if name.contains('*') => {
                declared.retain(|declared| declared.trim_matches('*') != name.trim_matches('*'));
                let problem = "a parameter matches one segment; declare a route for each number of segments";
                problems.add(format!("{{{name}}}: {problem}"));
            }
            TemplateSegment::Param { name, .. } if !declared.remove(name) => {
                let hint = nearest(name, declared.iter().copied());
                let hint = hint.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
                problems.add(format!("path parameter {name} is not declared exactly once{hint}"));
            }
            TemplateSegment::Literal(segment) if segment.contains(['{', '}']) => {
                let problem = "mixes text and a parameter; only a verb may follow one, as in {name}:verb";
                problems.add(format!("segment {segment} {problem}"));
            }
            _ => {}
        }
    }
    for name in declared {
        problems.add(format!("path parameter {name} is not in the path"));
    }
    problems.or(|| Some(()))
}
