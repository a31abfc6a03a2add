//! The upstream behind the gateway and behind nginx, and the routes that it serves.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::json;

use super::Failure;
use super::bare::{Listener, whole};
use super::nginx::Nginx;
use super::tools::Tools;

/// A running upstream.
#[derive(Debug)]
pub(super) enum Upstream {
    Nginx(Nginx),
    /// Where nginx is missing.
    Hyper(Listener),
}

impl Upstream {
    /// Starts one with a metered and an unmetered route for each size of the body.
    pub(super) fn start(tools: &Tools, data_dir: &Path, bodies: &[usize]) -> Result<Self, Failure> {
        let Some(program) = &tools.nginx else {
            let respond =
                |request: &hyper::Request<_>| whole("application/json", document(size_in(request.uri().path())).into());
            return Ok(Self::Hyper(Listener::serve(respond)?));
        };
        let files: Vec<_> =
            bodies.iter().flat_map(|body| [charged(*body), free(*body)].map(|path| (path, document(*body)))).collect();
        Ok(Self::Nginx(Nginx::files(program, data_dir, &files)?))
    }

    pub(super) fn address(&self) -> SocketAddr {
        match self {
            Self::Nginx(nginx) => nginx.address(),
            Self::Hyper(listener) => listener.address(),
        }
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nginx(_) => "nginx with one worker",
            Self::Hyper(_) => "bare hyper",
        })
    }
}

/// The metered route whose response has `body` bytes.
pub(super) fn charged(body: usize) -> String {
    format!("/charged/{body}")
}

/// The unmetered route whose response has `body` bytes.
pub(super) fn free(body: usize) -> String {
    format!("/free/{body}")
}

/// The catalogue with these routes.
pub(super) fn catalogue(bodies: &[usize]) -> String {
    let route = |path, metered| json!({"path": path, "method": "GET", "metered": metered});
    let endpoints: Vec<_> =
        bodies.iter().flat_map(|body| [route(charged(*body), true), route(free(*body), false)]).collect();
    json!({"market": "bench", "version": 1, "endpoints": endpoints}).to_string()
}

/// The size that a route's path names.
fn size_in(path: &str) -> usize {
    path.rsplit('/').next().and_then(|size| size.parse().ok()).unwrap_or(0)
}

/// A JSON document of `bytes` bytes: a string, or a number if it is too short for one.
fn document(bytes: usize) -> Vec<u8> {
    match bytes.checked_sub(2) {
        Some(letters) => format!("\"{}\"", "x".repeat(letters)).into_bytes(),
        None => vec![b'1'; bytes],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metering_core::Catalogue;

    #[test]
    fn routes_come_in_pairs() {
        let catalogue = Catalogue::from_json(&catalogue(&[1_000, 64_000])).unwrap();
        let routes: Vec<_> = catalogue.routes().iter().map(|route| (&*route.template, route.metered)).collect();
        let expected =
            [("/charged/1000", true), ("/free/1000", false), ("/charged/64000", true), ("/free/64000", false)];
        assert_eq!(routes, expected);
        assert_eq!((size_in("/charged/1000"), size_in("/other")), (1_000, 0));
    }

    #[test]
    fn documents_are_json_of_the_given_size() {
        for bytes in [1, 2, 3, 1_000] {
            let document = document(bytes);
            assert_eq!(document.len(), bytes);
            assert!(serde_json::from_slice::<serde_json::Value>(&document).is_ok());
        }
    }
}
