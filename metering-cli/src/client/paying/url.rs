//! URLs of calls to any service.

use http::Uri;
use metering_client::ServiceUrl;

use crate::failure::Failure;

/// A URL with its path and query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallUrl {
    /// Scheme, host and port.
    pub(crate) origin: ServiceUrl,
    /// Path and query.
    pub(crate) target: String,
}

impl CallUrl {
    /// Reads a URL; `None` if the text is something else, such as a path.
    ///
    /// # Errors
    /// [`Failure::Usage`] when it is a URL that cannot be called.
    pub(crate) fn read(text: &str) -> Result<Option<Self>, Failure> {
        let has_scheme =
            |scheme: &str| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        if !has_scheme("http://") && !has_scheme("https://") {
            return Ok(None);
        }
        let wrong = || {
            Failure::Usage(
                "the URL cannot be called: it must have a host, and neither user nor fragment, and be percent-encoded"
                    .to_owned(),
            )
        };
        let uri: Uri = text.parse().ok().filter(|_| !text.contains('#')).ok_or_else(wrong)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Err(wrong()) };
        let origin = format!("{scheme}://{authority}").parse().map_err(|_| wrong())?;
        let target = uri.path_and_query().map_or("/", |target| target.as_str()).to_owned();
        Ok(Some(Self { origin, target }))
    }

    /// Whether it belongs to a service, and may get that service's key.
    pub(crate) fn is_of(&self, service: &ServiceUrl) -> bool {
        let url = format!("{}{}", self.origin, self.target);
        let rest = url.strip_prefix(&service.to_string());
        rest.is_some_and(|rest| rest.starts_with(['/', '?'])) && !self.target.contains("..")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CallUrl {
        CallUrl::read(text).unwrap().unwrap()
    }

    #[test]
    fn urls_are_split_and_paths_left_alone() {
        let url = read("HTTPS://API.example.com:8443/a/b?c=%20d");
        assert_eq!(
            (url.origin.to_string().as_str(), url.target.as_str()),
            ("https://api.example.com:8443", "/a/b?c=%20d")
        );
        assert_eq!(read("http://127.0.0.1:1").target, "/");
        for path in ["/mpp/ethPrice", "mpp", "", "ftp://a/", "http:/a"] {
            assert_eq!(CallUrl::read(path).unwrap(), None, "{path}");
        }
        for bad in ["http://", "https://me:pw@a.example/", "https://a.example/#x", "https://a.example/a b", "http:///x"]
        {
            assert!(matches!(CallUrl::read(bad), Err(Failure::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn key_goes_to_its_own_service_only() {
        let service: ServiceUrl = "https://api.example.com/v1".parse().unwrap();
        // url, belongs
        let table = [
            ("https://api.example.com/v1/x", true),
            ("https://api.example.com/v1?a=1", true),
            ("https://API.example.com/v1/x", true),
            ("https://api.example.com:443/v1/x", true),
            ("https://api.example.com/v10/x", false),
            ("https://api.example.com/v1/../x", false),
            ("http://api.example.com/v1/x", false),
            ("https://api.example.com:444/v1/x", false),
            ("https://api.example.com.evil.example/v1/x", false),
        ];
        for (url, belongs) in table {
            assert_eq!(read(url).is_of(&service), belongs, "{url}");
        }
    }
}
