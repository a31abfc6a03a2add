//! Decides where a request goes: once per request, from its method and path. The first segment is looked up in a table.
//! A path that no other part claims is looked up among the endpoints of the metering API. The destination has the ones
//! that were found, so that they are not looked up again.

use std::collections::HashMap;

use http::Method;
use metering_core::Catalogue;

use crate::access::session;
use crate::api;
use crate::api::app::App;
use crate::authorize::Authorizer;
use crate::config::{Config, Surface};
use crate::endpoints::Found;
use crate::pages;

/// The paths of the MCP server.
pub(crate) const MCP_PATHS: [&str; 4] = ["/mcp", "/sse", "/messages", "/messages/"];

/// Where a request goes.
#[derive(Default)]
pub(crate) enum Destination {
    /// The endpoint that proxies ask.
    Authorize,
    /// The MCP server.
    Mcp,
    /// The gateway, whether or not this process serves it.
    Gateway,
    /// A page or an asset.
    Page,
    /// The endpoints of the metering API at the path, one per method.
    Api(Found<'static, App>),
    /// The same, for a browser that is signed in.
    InSession(Found<'static, App>),
    /// Nothing is at the path.
    #[default]
    Nothing,
}

/// The destinations of requests to a process.
pub(super) struct Destinations {
    /// By first segment. The first claim that covers a request applies.
    claims: HashMap<Box<str>, Vec<Claim>>,
    metering: bool,
}

/// A path that belongs to a part of the service.
struct Claim {
    /// `None` for all paths with the first segment.
    path: Option<&'static str>,
    owner: Owner,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Authorize,
    Mcp,
    Gateway,
    Pages,
    /// The pages, except for `POST`, which is the API's.
    PagesAndApi,
}

impl Destination {
    /// The surface that it belongs to.
    pub(crate) fn surface(&self) -> Surface {
        match self {
            Self::Authorize => Surface::Authorize,
            Self::Mcp => Surface::Mcp,
            Self::Gateway => Surface::Gateway,
            Self::Page | Self::Api(_) | Self::InSession(_) | Self::Nothing => Surface::Metering,
        }
    }
}

impl Destinations {
    /// Those of a process with this configuration, and with the routes of this catalogue.
    pub(super) fn new(config: &Config, catalogue: &Catalogue) -> Self {
        let mut all = Self { claims: HashMap::new(), metering: config.serves(Surface::Metering) };
        if config.serves(Surface::Authorize) {
            all.claim_below(first_segment(Authorizer::PATH).unwrap_or_default(), Owner::Authorize);
            all.claim(Authorizer::CHECK, Owner::Authorize);
        }
        if config.serves(Surface::Mcp) {
            MCP_PATHS.into_iter().for_each(|path| all.claim(path, Owner::Mcp));
        }
        catalogue.prefixes().into_iter().for_each(|first| all.claim_below(first, Owner::Gateway));
        if all.metering {
            pages::PATHS.into_iter().for_each(|path| all.claim(path, Owner::Pages));
            pages::FOLDERS.into_iter().for_each(|first| all.claim_below(first, Owner::Pages));
            pages::SHARED_PATHS.into_iter().for_each(|path| all.claim(path, Owner::PagesAndApi));
        }
        all
    }

    /// The destination of a request with this method and path.
    pub(super) fn of(&self, method: &Method, path: &str) -> Destination {
        // `CONNECT host:port` and `OPTIONS *` have no path.
        let Some(first) = first_segment(path) else { return Destination::Nothing };
        let mut claims = self.claims.get(first).into_iter().flatten();
        match claims.find(|claim| claim.covers(method, path)).map(|claim| claim.owner) {
            Some(Owner::Authorize) => Destination::Authorize,
            Some(Owner::Mcp) => Destination::Mcp,
            Some(Owner::Gateway) => Destination::Gateway,
            Some(Owner::Pages | Owner::PagesAndApi) => match session::call_of(path) {
                Some(call) => api::endpoints_at(call).map_or(Destination::Nothing, Destination::InSession),
                None => Destination::Page,
            },
            None => {
                let found = api::endpoints_at(path).filter(|found| self.metering || found.is_everywhere(path));
                found.map_or(Destination::Nothing, Destination::Api)
            }
        }
    }

    /// Claims a path.
    fn claim(&mut self, path: &'static str, owner: Owner) {
        let first = first_segment(path).unwrap_or_default();
        self.claims.entry(first.into()).or_default().push(Claim { path: Some(path), owner });
    }

    /// Claims all paths with a first segment.
    fn claim_below(&mut self, first: &str, owner: Owner) {
        self.claims.entry(first.into()).or_default().push(Claim { path: None, owner });
    }
}

impl Claim {
    fn covers(&self, method: &Method, path: &str) -> bool {
        self.path.is_none_or(|own| own == path) && !(self.owner == Owner::PagesAndApi && method == Method::POST)
    }
}

/// The first segment of a path; it is empty for `/`.
fn first_segment(path: &str) -> Option<&str> {
    path.strip_prefix('/')?.split('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

    /// The destination as text: that of an endpoint is its path.
    fn shown(destination: Destination) -> &'static str {
        match destination {
            Destination::Authorize => "authorize",
            Destination::Mcp => "mcp",
            Destination::Gateway => "gateway",
            Destination::Page => "page",
            Destination::Api(found) => found.endpoints().next().map_or("", |endpoint| endpoint.path.as_str()),
            Destination::InSession(_) => "in a session",
            Destination::Nothing => "nothing",
        }
    }

    fn destinations(surfaces: &[Surface], catalogue: &str) -> Destinations {
        let config = Config { surfaces: surfaces.iter().copied().collect(), ..Config::default() };
        Destinations::new(&config, &Catalogue::from_json(catalogue).unwrap())
    }

    #[test]
    fn path_and_method_decide_where_a_request_goes() {
        let all = destinations(&Surface::ALL, metering_sample::ROUTES);
        let table: &[(Method, &[&str], &str)] = &[
            (Method::GET, &["/authorize", "/authorize/", "/authorize/mpp/x"], "authorize"),
            (Method::POST, &[CHECK, "/authorize"], "authorize"),
            (Method::POST, &["/mcp", "/sse", "/messages", "/messages/"], "mcp"),
            (Method::GET, &["/mpp", "/mpp/", "/mpp/ethPrice/19000000"], "gateway"),
            (Method::GET, &["/", "/favicon.ico", "/metering", "/metering/", "/metering/x"], "page"),
            (Method::POST, &["/", "/assets/x.js", "/agents-tos/1", "/docs", "/docs/mcp"], "page"),
            (Method::GET, &["/verify", "/verify/", "/verify-receipt"], "page"),
            (Method::PUT, &["/verify", "/verify/"], "page"),
            (Method::POST, &["/verify", "/verify/"], "/verify"),
            (Method::GET, &["/metering/session/credits/balance"], "in a session"),
            (Method::GET, &["/metering/session", "/metering/sessions/keys"], "page"),
            (
                Method::POST,
                &["/metering/session/mpp/x", "/metering/session/mcp", "/metering/session/authorize"],
                "nothing",
            ),
            (Method::GET, &["/health", "/health/"], "/health"),
            (Method::PUT, &["/health"], "/health"),
            (Method::GET, &["/oauth/authorize"], "page"),
            (Method::POST, &["/oauth/token"], "/oauth/token"),
            (Method::POST, &["/metering/session/oauth/consents"], "in a session"),
            (Method::GET, &["/credits/balance"], "/credits/balance"),
            (Method::POST, &["/internal/billing/deduct"], "/internal/billing/deduct"),
            (Method::GET, &["/keys/a%2Fb", "/keys/a/"], "/keys/{id}"),
            (Method::GET, &["/authorized", "/envoy.service.auth.v3.Authorization", "/mcp/", "/messages/x"], "nothing"),
            (Method::GET, &["//", "//mpp/x", "/mppx", "/metering-other", "/favicon.ico/", "/verify/x"], "nothing"),
            (Method::GET, &["/nothing", "/health//", "/keys/%ff"], "nothing"),
            // The path of `CONNECT host:port` and `OPTIONS *`.
            (Method::CONNECT, &[""], "nothing"),
            (Method::OPTIONS, &["*"], "nothing"),
        ];
        for (method, paths, expected) in table {
            for path in *paths {
                assert_eq!(shown(all.of(method, path)), *expected, "{method} {path}");
            }
        }
    }

    #[test]
    fn a_process_has_the_paths_of_its_surfaces_and_those_of_every_process() {
        // surfaces, path, destination
        let table: &[(&[Surface], &str, &str)] = &[
            (&[Surface::Gateway], "/mpp/x", "gateway"),
            (&[Surface::Gateway], "/health", "/health"),
            (&[Surface::Gateway], "/health/", "nothing"),
            (&[Surface::Gateway], "/credits/balance", "nothing"),
            (&[Surface::Gateway], "/verify", "nothing"),
            (&[Surface::Gateway], "/", "nothing"),
            (&[Surface::Gateway], "/mcp", "nothing"),
            (&[Surface::Gateway], "/authorize", "nothing"),
            (&[Surface::Gateway], CHECK, "nothing"),
            // Another process serves it; it is not a path of the API.
            (&[Surface::Metering], "/mpp/x", "gateway"),
            (&[Surface::Metering], "/mcp", "nothing"),
            (&[Surface::Mcp, Surface::Authorize], "/sse", "mcp"),
            (&[Surface::Mcp, Surface::Authorize], "/authorize/x", "authorize"),
            (&[Surface::Mcp, Surface::Authorize], "/docs", "nothing"),
        ];
        for (surfaces, path, expected) in table {
            let destinations = destinations(surfaces, metering_sample::ROUTES);
            assert_eq!(shown(destinations.of(&Method::GET, path)), *expected, "{surfaces:?} {path}");
        }
    }

    /// Catalogues that a server accepts claim none of these paths.
    #[test]
    fn authorize_comes_before_mcp_the_gateway_the_pages_and_the_api() {
        let routes = ["authorize", "mcp", "envoy.service.auth.v3.Authorization", "docs", "health"]
            .map(|first| format!(r#"{{"path": "/{first}/x", "method": "GET", "metered": true}}"#));
        let catalogue = format!(r#"{{"market": "M", "version": 1, "endpoints": [{}]}}"#, routes.join(", "));
        let all = destinations(&Surface::ALL, &catalogue);
        let table = [
            ("/authorize/x", "authorize"),
            (CHECK, "authorize"),
            ("/envoy.service.auth.v3.Authorization/x", "gateway"),
            ("/mcp", "mcp"),
            ("/mcp/x", "gateway"),
            ("/docs", "gateway"),
            ("/health", "gateway"),
        ];
        for (path, expected) in table {
            assert_eq!(shown(all.of(&Method::GET, path)), expected, "{path}");
        }
    }
}
