//! Writes the document as JSON, one path after the other.
//!
//! An operation takes about 150 KB as utoipa's types and 4 KB as JSON, so the routes of a large catalogue are never
//! all there as the former.

use std::collections::{BTreeMap, BTreeSet};

use metering_core::Catalogue;
use metering_core::catalogue::Route;
use serde_json::value::RawValue;
use utoipa::openapi::{Info, OpenApi, PathItem, Paths};

use super::{authored, bounds, metered};
use crate::endpoints::errors;

/// The members that come first, in this order.
const FIRST: [&str; 5] = ["openapi", "info", "servers", "paths", "components"];

/// The document `own` with the routes of a catalogue. `ids` are their operation ids ([`metered::ids`]); `finish` adds
/// everything else about the routes of one path.
pub(super) fn with_routes(
    own: &OpenApi,
    (catalogue, ids): (&Catalogue, &[Option<String>]),
    finish: impl Fn(&mut OpenApi, &[&Route]),
) -> serde_json::Result<String> {
    let mut routes: BTreeMap<&str, Vec<(&Route, &str)>> = BTreeMap::new();
    for (route, id) in catalogue.routes().iter().zip(ids) {
        if let Some(id) = id.as_deref() {
            routes.entry(&*route.template).or_default().push((route, id));
        }
    }
    let mut rest = own.clone();
    rest.paths.paths.clear();
    let rest: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&rest.to_json()?)?;
    let others = rest.keys().map(String::as_str).filter(|name| !FIRST.contains(name));
    let mut text = String::new();
    for name in FIRST.into_iter().chain(others) {
        let Some(value) = rest.get(name) else { continue };
        text.push(if text.is_empty() { '{' } else { ',' });
        write_name(&mut text, name)?;
        if name == "paths" {
            write_paths(&mut text, own, &routes, &finish)?;
        } else {
            text.push_str(value.get());
        }
    }
    text.push('}');
    text.shrink_to_fit();
    Ok(text)
}

fn write_paths(
    text: &mut String,
    own: &OpenApi,
    routes: &BTreeMap<&str, Vec<(&Route, &str)>>,
    finish: &impl Fn(&mut OpenApi, &[&Route]),
) -> serde_json::Result<()> {
    let own_paths = own.paths.paths.keys().map(String::as_str);
    let paths: BTreeSet<&str> = own_paths.chain(routes.keys().copied()).collect();
    text.push('{');
    for (position, path) in paths.into_iter().enumerate() {
        if position > 0 {
            text.push(',');
        }
        write_name(text, path)?;
        let known = own.paths.paths.get(path);
        match routes.get(path) {
            None => text.push_str(&serde_json::to_string(&known)?),
            Some(routes) => text.push_str(&authored::to_json(item(path, known, routes, finish), routes)?),
        }
    }
    text.push('}');
    Ok(())
}

/// The item of a path with these routes.
fn item(
    path: &str,
    known: Option<&PathItem>,
    routes: &[(&Route, &str)],
    finish: &impl Fn(&mut OpenApi, &[&Route]),
) -> Option<PathItem> {
    let mut part = OpenApi::new(Info::new("", ""), Paths::new());
    part.paths.paths.extend(known.map(|known| (path.to_owned(), known.clone())));
    metered::add_routes(&mut part, routes.iter().copied());
    bounds::add(&mut part);
    errors::reference(&mut part);
    finish(&mut part, &routes.iter().map(|(route, _)| *route).collect::<Vec<_>>());
    part.paths.paths.remove(path)
}

fn write_name(text: &mut String, name: &str) -> serde_json::Result<()> {
    text.push_str(&serde_json::to_string(name)?);
    text.push(':');
    Ok(())
}
