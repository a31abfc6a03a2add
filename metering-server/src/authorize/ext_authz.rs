//! Envoy's `ext_authz` over gRPC: converts Envoy's messages to requests, and our responses to Envoy's messages.

mod messages;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, HOST, VARY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri};
use metering_core::Error;
use metering_core::wire::REQUEST_ID_HEADER;
use prost::Message;

use super::original::PATH;
use crate::gateway::ACCOUNT_HEADER;
use messages::{
    CheckRequest, CheckResponse, DeniedHttpResponse, HeaderValueOption, HttpRequest, HttpResponse, HttpStatus,
    OkHttpResponse, Status,
};

/// The method that Envoy calls.
pub(super) const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// The id to settle a request with.
const REQUEST_ID: HeaderName = HeaderName::from_static(REQUEST_ID_HEADER);
/// Headers of a yes that the service gets. A client's own are removed.
const FOR_SERVICE: [HeaderName; 2] = [ACCOUNT_HEADER, REQUEST_ID];
/// Headers of our response that have no meaning for the original request.
const OWN: [HeaderName; 3] = [CACHE_CONTROL, CONTENT_LENGTH, X_CONTENT_TYPE_OPTIONS];

/// Headers of which a response may have several lines, or which the service has, too.
const SEVERAL: [HeaderName; 2] = [VARY, WWW_AUTHENTICATE];

/// `APPEND_IF_EXISTS_OR_ADD`, `OVERWRITE_IF_EXISTS_OR_ADD`
const APPEND: i32 = 0;
const OVERWRITE: i32 = 2;
/// `OK`, `PERMISSION_DENIED`: Envoy only distinguishes these.
const ALLOWED: i32 = 0;
const DENIED: i32 = 7;

/// The original request of a `CheckRequest`, in the form of a proxy that appends the original path.
///
/// # Errors
/// [`Error::ValidationFailed`] if it is not one.
pub(super) fn asked(message: &[u8]) -> Result<Parts, Error> {
    let check = CheckRequest::decode(message).map_err(|error| Error::field("CheckRequest", error))?;
    let http = check.attributes.and_then(|attributes| attributes.request).and_then(|request| request.http);
    let http = http.ok_or_else(|| Error::field("CheckRequest", "has no attributes.request.http"))?;
    let path = |problem: &str| Error::field("path", problem);
    // Anything else would not be below our path, and then headers count, which the client may have sent.
    if !http.path.starts_with('/') {
        return Err(path("must begin with /"));
    }
    // The parser drops a fragment.
    if http.path.contains('#') {
        return Err(path("must have no fragment"));
    }
    let mut request = Request::new(());
    *request.uri_mut() = Uri::try_from(format!("{PATH}{}", http.path)).map_err(|_| path("is not a path"))?;
    *request.method_mut() = http.method.parse().map_err(|error| Error::field("method", error))?;
    *request.headers_mut() = headers(&http)?;
    Ok(request.into_parts().0)
}

/// The headers of the original request, as HTTP/1.1 has them.
fn headers(http: &HttpRequest) -> Result<HeaderMap, Error> {
    let mut headers = HeaderMap::new();
    let mut add = |name: &str, value: &[u8]| -> Result<(), Error> {
        if name.starts_with(':') {
            return Ok(());
        }
        let parsed: HeaderName = name.parse().map_err(|error| Error::field(name, error))?;
        let value = HeaderValue::from_bytes(value).map_err(|error| Error::field(name, error))?;
        // `append` panics when the map is full.
        headers.try_append(parsed, value).map_err(|error| Error::field("headers", error))?;
        Ok(())
    };
    for (name, value) in &http.headers {
        add(name, value.as_bytes())?;
    }
    for header in http.header_map.iter().flat_map(|map| &map.headers) {
        let is_raw = !header.raw_value.is_empty();
        add(&header.key, if is_raw { &header.raw_value } else { header.value.as_bytes() })?;
    }
    if let Ok(host) = HeaderValue::try_from(&http.host) {
        headers.try_insert(HOST, host).map_err(|error| Error::field("headers", error))?;
    }
    Ok(headers)
}

/// Our response as a `CheckResponse`.
pub(super) fn answer(response: &http::Response<Bytes>) -> Vec<u8> {
    let (status, headers) = (response.status(), response.headers());
    let (code, http_response) = if status == StatusCode::OK {
        (ALLOWED, HttpResponse::Ok(yes(headers)))
    } else {
        (DENIED, HttpResponse::Denied(no(status, headers, response.body())))
    };
    CheckResponse { status: Some(Status { code }), http_response: Some(http_response) }.encode_to_vec()
}

fn yes(headers: &HeaderMap) -> OkHttpResponse {
    let is_for_service = |name: &HeaderName| FOR_SERVICE.contains(name);
    let (own, clients): (Vec<_>, Vec<_>) = passed(headers).partition(|(name, _)| is_for_service(name));
    let missing = FOR_SERVICE.into_iter().filter(|name| !headers.contains_key(name));
    OkHttpResponse {
        headers: own.into_iter().map(set).collect(),
        headers_to_remove: missing.map(|name| name.to_string()).collect(),
        response_headers_to_add: clients.into_iter().map(set).collect(),
    }
}

fn no(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> DeniedHttpResponse {
    DeniedHttpResponse {
        status: Some(HttpStatus { code: i32::from(status.as_u16()) }),
        headers: passed(headers).map(set).collect(),
        body: String::from_utf8_lossy(body).into_owned(),
    }
}

fn passed(headers: &HeaderMap) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
    headers.iter().filter(|(name, _)| !OWN.contains(name))
}

fn set((name, value): (&HeaderName, &HeaderValue)) -> HeaderValueOption {
    let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let header = messages::HeaderValue { key: name.to_string(), value, raw_value: Vec::new() };
    HeaderValueOption { header: Some(header), append_action: if SEVERAL.contains(name) { APPEND } else { OVERWRITE } }
}

#[cfg(test)]
mod tests {
    use super::messages::{AttributeContext, AttributeRequest, HeaderMap as RawHeaders};
    use super::*;

    fn http(path: &str, headers: &[(&str, &str)]) -> HttpRequest {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (method, host) = ("POST".to_owned(), "api.example".to_owned());
        HttpRequest { method, headers, path: path.to_owned(), host, header_map: None }
    }

    fn encoded(http: HttpRequest) -> Vec<u8> {
        let request = AttributeRequest { http: Some(http) };
        CheckRequest { attributes: Some(AttributeContext { request: Some(request) }) }.encode_to_vec()
    }

    #[test]
    fn the_original_request_is_asked_about_as_over_http() {
        let message = http("/a?b=c", &[(":path", "/forged"), ("authorization", "Bearer k"), ("x-original-uri", "/a")]);
        let head = asked(&encoded(message)).unwrap();
        assert_eq!((head.method.as_str(), head.uri.to_string().as_str()), ("POST", "/authorize/a?b=c"));
        let of = |name: &str| head.headers.get(name).map(|value| value.to_str().unwrap());
        assert_eq!((of("host"), of("authorization")), (Some("api.example"), Some("Bearer k")));
        // Headers of clients about the target are kept for comparison.
        assert_eq!((of("x-original-uri"), head.headers.len()), (Some("/a"), 3));
    }

    #[test]
    fn raw_headers_are_read_with_every_value() {
        let header = |value: &str, raw: &[u8]| {
            let (value, raw_value) = (value.to_owned(), raw.to_vec());
            messages::HeaderValue { key: "x-a".to_owned(), value, raw_value }
        };
        let raw = RawHeaders { headers: vec![header("one", b""), header("", b"two\xff")] };
        let head = asked(&encoded(HttpRequest { header_map: Some(raw), ..http("/a", &[]) })).unwrap();
        let values: Vec<_> = head.headers.get_all("x-a").iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(values, [&b"one"[..], b"two\xff"]);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let table = [
            (b"\xff".to_vec(), "CheckRequest"),
            (Vec::new(), "CheckRequest"),
            (encoded(http("/a#b", &[])), "path"),
            (encoded(http("/a b", &[])), "path"),
            // Without a path below `/authorize`, what the client says would be the target.
            (encoded(http("", &[])), "path"),
            (encoded(http("?b=c", &[])), "path"),
            (encoded(http("*", &[])), "path"),
            (encoded(http("/a", &[("x y", "z")])), "x y"),
            (encoded(http("/a", &[("x", "a\nb")])), "x"),
            (encoded(HttpRequest { method: "G T".to_owned(), ..http("/a", &[]) }), "method"),
        ];
        for (message, named) in table {
            match asked(&message) {
                Err(Error::ValidationFailed(fields)) => assert!(fields.contains_key(named), "{named}: {fields:?}"),
                other => panic!("{named}: {other:?}"),
            }
        }
    }

    #[test]
    fn more_headers_than_a_map_can_hold_are_refused() {
        let header = |number: u32| (format!("x-{number}"), String::new());
        let headers = (0..40_000).map(header).collect();
        let message = encoded(HttpRequest { headers, ..http("/a", &[]) });
        match asked(&message) {
            Err(Error::ValidationFailed(fields)) => assert!(fields.contains_key("headers"), "{fields:?}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_are_not_logged() {
        let message = http("/a?key=secret", &[("authorization", "Bearer secret")]);
        assert!(!format!("{message:?}").contains("secret"));
    }

    #[test]
    fn a_yes_sets_the_headers_of_service_and_client() {
        let response = http::Response::builder().header("x-metering-org-id", "org_1");
        let response = response.header("x-bds-credit-charged", "0.01").header("cache-control", "no-store");
        let answer = CheckResponse::decode(&*answer(&response.body(Bytes::new()).unwrap())).unwrap();
        let Some(HttpResponse::Ok(yes)) = answer.http_response else { panic!("a yes: {answer:?}") };
        let names = |headers: &[HeaderValueOption]| -> Vec<_> {
            headers.iter().map(|option| option.header.clone().unwrap_or_default().key).collect()
        };
        assert_eq!(answer.status, Some(Status { code: 0 }));
        assert_eq!(names(&yes.headers), ["x-metering-org-id"]);
        assert_eq!(yes.headers_to_remove, ["x-bds-request-id"]);
        assert_eq!(names(&yes.response_headers_to_add), ["x-bds-credit-charged"]);
    }

    #[test]
    fn a_no_is_the_whole_response() {
        let response = http::Response::builder().status(402).header("www-authenticate", "one");
        let response = response.header("www-authenticate", "two").header("content-type", "application/json");
        let answer = CheckResponse::decode(&*answer(&response.body(Bytes::from_static(b"{}")).unwrap())).unwrap();
        let Some(HttpResponse::Denied(no)) = answer.http_response else { panic!("a no: {answer:?}") };
        assert_eq!((answer.status, no.status), (Some(Status { code: 7 }), Some(HttpStatus { code: 402 })));
        assert_eq!((no.headers.len(), no.body.as_str()), (3, "{}"));
    }
}
