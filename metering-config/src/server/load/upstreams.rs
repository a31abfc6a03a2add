//! Checks the tables `[[gateway.upstreams]]`, and a catalogue against them.

use std::ops::RangeInclusive;
use std::time::Duration;

use http::uri::PathAndQuery;
use metering_core::Catalogue;
use metering_core::catalogue::is_upstream_name;

use super::service_url;
use crate::ConfigError;
use crate::server::upstreams::KEY;
use crate::server::{Config, Surface, UpstreamConfig};

/// The maximum number of upstreams.
const MAX: usize = 64;

/// The limits of `eject_time` and `health_interval`.
const TIMES: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3_600);

/// Checks all of them.
pub(super) fn check(upstreams: &[UpstreamConfig]) -> Result<(), ConfigError> {
    if upstreams.len() > MAX {
        let problem = format!("has {} upstreams; at most {MAX} are possible", upstreams.len());
        return Err(ConfigError::key(KEY, problem));
    }
    for (index, upstream) in upstreams.iter().enumerate() {
        upstream.check()?;
        if upstreams[..index].iter().any(|other| other.name == upstream.name) {
            return Err(ConfigError::key(KEY, format_args!("two upstreams have the name {:?}", upstream.name)));
        }
    }
    Ok(())
}

impl UpstreamConfig {
    fn check(&self) -> Result<(), ConfigError> {
        if !is_upstream_name(&self.name) {
            let problem = format!("{:?} must be 1 to 40 characters of A-Z a-z 0-9 . _ -", self.name);
            return Err(ConfigError::key(format!("{KEY}.name"), problem));
        }
        let key = |key: &str| format!("{KEY}.{}.{key}", self.name);
        service_url::check(&key("url"), &self.url)?;
        for (name, time) in [("eject_time", self.eject_time), ("health_interval", self.health_interval)] {
            if !TIMES.contains(&time.duration()) {
                return Err(ConfigError::key(key(name), "must be 1s to 1h"));
            }
        }
        let is_path = |path: &str| path.starts_with('/') && path.parse::<PathAndQuery>().is_ok();
        if self.health.as_deref().is_some_and(|path| !is_path(path)) {
            return Err(ConfigError::key(key("health"), "must be a path that starts with a slash, such as /health"));
        }
        self.header_pairs().map(drop)
    }
}

impl Config {
    /// Why this process cannot forward the routes of a catalogue; `None` if it can, or does not forward any.
    #[must_use]
    pub fn unserved_route(&self, catalogue: &Catalogue) -> Option<String> {
        if !self.serves(Surface::Gateway) {
            return None;
        }
        let upstreams = &self.gateway.upstreams;
        let is_known = |name: &&str| upstreams.iter().any(|upstream| upstream.name == *name);
        catalogue.routes().iter().find_map(|route| {
            let (method, template) = (&route.method, &route.template);
            let Some(named) = &route.upstreams else {
                let has_default = self.upstream.is_some() || upstreams.is_empty();
                return (!has_default).then(|| {
                    format!(
                        "route {method} {template} names no upstream; set the key upstream of the configuration for such \
                         routes, or name one of {KEY} here, for this route or for the whole catalogue"
                    )
                });
            };
            let unknown = named.names().find(|name| !is_known(name))?;
            Some(format!("route {method} {template}: there is no upstream {unknown:?} in {KEY}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Span;

    fn config(toml: &str) -> Config {
        toml::from_str(toml).unwrap()
    }

    const TWO: &str = "[[gateway.upstreams]]\nname = 'eu'\nurl = 'http://127.0.0.1:1/v1'\nweight = 3\n\
                       [[gateway.upstreams]]\nname = 'us'\nurl = 'https://us.example'\nhealth = '/health?deep=1'\n";

    #[test]
    fn keys_have_defaults() {
        let config = config(TWO);
        assert_eq!(check(&config.gateway.upstreams).map_err(|error| error.to_string()), Ok(()));
        let [eu, us] = &config.gateway.upstreams[..] else { panic!("two upstreams") };
        assert_eq!((eu.weight.get(), us.weight.get()), (3, 1));
        assert_eq!((eu.eject_after, eu.eject_time, eu.health_interval), (5, Span::seconds(30), Span::seconds(5)));
        assert_eq!((eu.health.as_deref(), us.health.as_deref()), (None, Some("/health?deep=1")));
        let printed = toml::to_string(&config).unwrap();
        assert_eq!(toml::to_string(&toml::from_str::<Config>(&printed).unwrap()).unwrap(), printed);
    }

    #[test]
    fn mistakes_are_named() {
        // what is added to the second upstream, a part of the message
        let table = [
            ("weight = 0", "weight"),
            ("wieght = 1", "unknown field `wieght`"),
            ("eject_time = '0s'", "eject_time"),
            ("eject_time = '2h'", "gateway.upstreams.us.eject_time: must be 1s to 1h"),
            ("health_interval = '500ms'", "gateway.upstreams.us.health_interval: must be 1s to 1h"),
            ("headers.host = 'x'", "gateway.upstreams.us.headers.host: belongs to"),
            ("headers.x-key.file = '/nowhere/key'", "gateway.upstreams.us.headers.x-key.file"),
        ];
        let read = |toml: &str| -> Result<(), String> {
            let mut config: Config = toml::from_str(toml).map_err(|error| error.to_string())?;
            let upstreams = &mut config.gateway.upstreams;
            let read = upstreams.iter_mut().try_for_each(UpstreamConfig::read_files);
            read.and_then(|()| check(upstreams)).map_err(|error| error.to_string())
        };
        for (added, part) in table {
            let error = read(&format!("{TWO}{added}\n")).unwrap_err();
            assert!(error.contains(part), "{added}: {error}");
        }
        // what is replaced in it
        let table = [
            ("name = 'us'", "name = 'eu'", "two upstreams have the name \"eu\""),
            ("name = 'us'", "name = 'u s'", "gateway.upstreams.name: \"u s\" must be"),
            ("https://us.example", "ftp://us.example", "gateway.upstreams.us.url"),
            ("https://us.example", "https://me:secret@us.example", "must not contain a user or password"),
            ("/health?deep=1", "health", "gateway.upstreams.us.health: must be a path"),
        ];
        for (before, after, part) in table {
            let error = read(&TWO.replace(before, after)).unwrap_err();
            assert!(error.contains(part), "{after}: {error}");
        }
    }

    #[test]
    fn each_route_needs_an_upstream_that_exists() {
        let catalogue = |field: &str| {
            let text = format!(
                r#"{{"market": "M", "version": 1, "endpoints": [{{"path": "/x", "method": "GET", "metered": true{field}}}]}}"#
            );
            Catalogue::from_json(&text).unwrap()
        };
        let with_default = format!("upstream = 'http://127.0.0.1:2'\n{TWO}");
        // configuration, field of the route, a part of the problem
        let table = [
            ("", "", None),
            (TWO, "", Some("route GET /x names no upstream")),
            (with_default.as_str(), "", None),
            (TWO, r#", "upstream": ["us", "eu"]"#, None),
            (TWO, r#", "upstream": ["us", "eu-2"]"#, Some("there is no upstream \"eu-2\"")),
            ("", r#", "upstream": "us""#, Some("there is no upstream \"us\"")),
            ("surfaces = ['metering']", r#", "upstream": "us""#, None),
        ];
        for (toml, field, part) in table {
            let problem = config(toml).unserved_route(&catalogue(field));
            assert_eq!(problem.is_some(), part.is_some(), "{field}: {problem:?}");
            assert!(problem.unwrap_or_default().contains(part.unwrap_or_default()), "{field}");
        }
    }
}
