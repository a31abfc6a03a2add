//! The target of a call: a path as given, or a route of the catalogue with its parameters filled in.

use std::collections::BTreeMap;
use std::str::FromStr;

use http::Method;
use metering_client::Client;
use metering_core::Catalogue;
use metering_core::catalogue::{
    BodyUse, ParamLocation, RequestPath, Route, RouteRefusal, TargetError, TemplateSegment,
};

use crate::client::catalogue::routes;
use crate::client::session::percent::push_encoded;
use crate::failure::Failure;

/// A parameter from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::client) struct Param {
    name: String,
    value: String,
}

impl FromStr for Param {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
            _ => Err("must be NAME=VALUE"),
        }
    }
}

/// A request's method and target.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::client) struct RequestTarget {
    pub(in crate::client) method: Method,
    pub(in crate::client) target: String,
    /// Whether the route is known to require a body.
    pub(in crate::client) needs_body: bool,
}

/// Resolves the method and target; fetches the catalogue only if it is needed.
pub(in crate::client) async fn resolve(
    client: &Client,
    method: Option<Method>,
    route: &str,
    params: &[Param],
) -> Result<RequestTarget, Failure> {
    if params.is_empty() && !route.contains(['{', '}']) {
        check_target(route)?;
        let method = method.unwrap_or(Method::GET);
        return Ok(RequestTarget { method, target: route.to_owned(), needs_body: false });
    }
    fill_in(&routes::catalogue(client).await?, method.as_ref(), route, params)
}

/// Rejects text that is not a path with a query, or that could be parsed as a different path.
fn check_target(target: &str) -> Result<(), Failure> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    match RequestPath::parse(path) {
        // Some routes accept encoded slashes; the service decides.
        Ok(_) | Err(TargetError::EncodedSeparator) => {}
        Err(error) => {
            return Err(Failure::Usage(format!(
                "{target:?} is not a path such as /mpp/ethPrice: {error}; `metering routes` lists all routes"
            )));
        }
    }
    if query.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the query of {target:?} has characters that must be percent-encoded; --param encodes them"
    )))
}

/// Fills in a route's template.
fn fill_in(
    catalogue: &Catalogue,
    method: Option<&Method>,
    template: &str,
    params: &[Param],
) -> Result<RequestTarget, Failure> {
    let of_method = |route: &&Route| method.is_none_or(|method| method.as_str() == &*route.method);
    let mut found = catalogue.routes().iter().filter(|route| &*route.template == template);
    let route = found.find(of_method).ok_or_else(|| {
        let method = method.map(|method| format!("{method} ")).unwrap_or_default();
        Failure::NotFound(format!("the catalogue has no route {method}{template}; `metering routes` lists all routes"))
    })?;
    let mut values = BTreeMap::new();
    for Param { name, value } in params {
        if !route.params.iter().any(|param| param.name == *name) {
            let known: Vec<_> = route.params.iter().map(|param| param.name.as_str()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(Failure::Usage(format!("{template} has no parameter {name}; it has {known}")));
        }
        let given: &mut Vec<&str> = values.entry(name.as_str()).or_default();
        given.push(value);
        if given.len() > 1 && !route.params.iter().any(|param| param.name == *name && param.array) {
            return Err(Failure::Usage(format!("parameter {name} is given twice")));
        }
    }
    let target = write_target(route, &values)?;
    check_filled(catalogue, route, &target)?;
    let method = Method::from_bytes(route.method.as_bytes())
        .map_err(|_| Failure::Failed(format!("the catalogue's method {} is not an HTTP method", route.method)))?;
    let needs_body = matches!(route.body_use(), BodyUse::Declared(_));
    Ok(RequestTarget { method, target, needs_body })
}

fn write_target(route: &Route, values: &BTreeMap<&str, Vec<&str>>) -> Result<String, Failure> {
    let mut target = String::new();
    let missing = |name: &str| Failure::Usage(format!("parameter {name} is missing; add --param {name}=VALUE"));
    for segment in route.segments() {
        target.push('/');
        match segment {
            TemplateSegment::Literal(text) => target.push_str(text),
            TemplateSegment::Param { name, verb } => {
                let value = values.get(name).and_then(|values| values.first());
                push_encoded(value.ok_or_else(|| missing(name))?, &mut target);
                if let Some(verb) = verb {
                    target.push(':');
                    target.push_str(verb);
                }
            }
        }
    }
    let mut separator = '?';
    for param in route.params.iter().filter(|param| param.location == ParamLocation::Query) {
        match values.get(param.name.as_str()) {
            Some(values) => {
                for value in values {
                    target.push(separator);
                    separator = '&';
                    push_encoded(&param.name, &mut target);
                    target.push('=');
                    push_encoded(value, &mut target);
                }
            }
            None if param.required => return Err(missing(&param.name)),
            None => {}
        }
    }
    Ok(target)
}

/// Checks the values against their types, by the gateway's own rules, and that the target still matches this route: a
/// value that is also another route's segment must not call, and pay for, that route.
fn check_filled(catalogue: &Catalogue, route: &Route, target: &str) -> Result<(), Failure> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let path = catalogue.path(path).map_err(|error| Failure::Usage(format!("invalid parameter: {error}")))?;
    let meant = catalogue.find(&route.method, &path).is_ok_and(|found| std::ptr::eq(found, route));
    match route.read(&path, query) {
        Ok(_) if meant => Ok(()),
        Err(RouteRefusal::InvalidParameters(problems)) => {
            let problems: Vec<_> = problems.iter().map(|(name, problem)| format!("{name}: {problem}")).collect();
            Err(Failure::Usage(problems.join("; ")))
        }
        _ => Err(Failure::Usage("a parameter's value makes this the path of another route".to_owned())),
    }
}

#[cfg(test)]
mod tests;
