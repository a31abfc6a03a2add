//! Cookies of sessions, which no script can read and no other site can have sent.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

use crate::http::reply::Reply;

/// The value of a cookie that came with a request. `None` also when it came with two values: another host of the domain
/// can set a cookie of the same name, even for one path only, and the request does not show which is ours.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(name, _)| *name == wanted).map(|(_, value)| value);
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}

/// A cookie to set.
pub(crate) struct Cookie<'c> {
    pub(crate) name: &'static str,
    /// The browser sends the cookie to this path and everything below it, and nowhere else.
    pub(crate) path: &'static str,
    /// Empty to delete it.
    pub(crate) value: &'c str,
    /// Whether the browser sends it over HTTPS only.
    pub(crate) is_secure: bool,
    /// How long the browser keeps it; `None` for until it is closed.
    pub(crate) max_age: Option<Duration>,
}

impl Cookie<'_> {
    /// Sets or deletes it with a reply.
    pub(crate) fn set(&self, reply: &mut Reply) {
        self.set_with("Strict", reply);
    }

    /// The same, for a cookie that the browser also sends when another site leads it here.
    pub(crate) fn set_for_links(&self, reply: &mut Reply) {
        self.set_with("Lax", reply);
    }

    fn set_with(&self, same_site: &str, reply: &mut Reply) {
        let Self { name, path, value, is_secure, max_age } = self;
        let secure = if *is_secure { "; Secure" } else { "" };
        let max_age = if value.is_empty() { Some(Duration::ZERO) } else { *max_age };
        let age = max_age.map(|age| format!("; Max-Age={}", age.as_secs())).unwrap_or_default();
        let cookie = format!("{name}={value}; Path={path}; HttpOnly; SameSite={same_site}{secure}{age}");
        if let Ok(mut value) = HeaderValue::try_from(cookie) {
            value.set_sensitive(true);
            reply.headers_mut().insert(header::SET_COOKIE, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=1; session=x; session=x; b=1"));
        headers.append(header::COOKIE, HeaderValue::from_static("last=z=z"));
        let found = |name| cookie(&headers, name);
        assert_eq!((found("session"), found("last"), found("sess")), (Some("x"), Some("z=z"), None));
    }

    #[test]
    fn a_cookie_with_two_values_is_none() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("session=of_another_host; session=ours; a=1"));
        headers.append(header::COOKIE, HeaderValue::from_static("a=2"));
        assert_eq!((cookie(&headers, "session"), cookie(&headers, "a")), (None, None));
    }

    #[test]
    fn a_cookie_has_its_attributes() {
        let set = |value, is_secure, max_age| {
            let mut reply = Reply::default();
            Cookie { name: "session", path: "/x", value, is_secure, max_age }.set(&mut reply);
            reply.headers()[header::SET_COOKIE].to_str().unwrap().to_owned()
        };
        let common = "; Path=/x; HttpOnly; SameSite=Strict";
        assert_eq!(set("a", true, Some(Duration::from_secs(60))), format!("session=a{common}; Secure; Max-Age=60"));
        assert_eq!(set("a", false, None), format!("session=a{common}"));
        assert_eq!(set("", false, None), format!("session={common}; Max-Age=0"));
    }
}
