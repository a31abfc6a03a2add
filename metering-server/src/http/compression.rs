//! Gzip for the service's own responses: pages, assets and documents once at startup, others when they are sent.
//!
//! Compression is opt-in per path. Responses with a secret are never compressed: an attacker who controls part of the
//! text next to a secret can infer it from the compressed length (the BREACH attack). Upstream bodies pass through
//! unchanged.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use sha3::{Digest, Sha3_256};

use crate::http::negotiation::accepts_gzip;
use crate::http::reply::{Reply, Response, bytes, into_response, with_headers};

/// Shorter bodies fit into one packet without compression.
const WORTHWHILE_BYTES: usize = 1_024;
/// Compressing a longer body takes about a millisecond or more, during which its worker would serve no other
/// connection.
const LONG_BYTES: usize = 64 * 1_024;
/// How many hexadecimal digits of the content's hash make up the ETag.
const TAG_DIGITS: usize = 16;

/// A text that does not change while the server runs, compressed once.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    plain: Version,
    gzip: Option<Version>,
    content_type: HeaderValue,
}

#[derive(Debug, Clone)]
struct Version {
    body: Bytes,
    tag: HeaderValue,
}

impl Document {
    pub(crate) fn new(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let hash = hex::encode(Sha3_256::digest(&body));
        let tag = |suffix: &str| {
            let text = format!("\"{}{suffix}\"", &hash[..TAG_DIGITS]);
            HeaderValue::try_from(text).expect("letters and digits in quotes")
        };
        let gzip = gzip(&body, Compression::best()).map(|body| Version { body, tag: tag("-gzip") });
        let content_type = HeaderValue::from_static(content_type);
        Self { plain: Version { body, tag: tag("") }, gzip, content_type }
    }

    /// The text itself.
    pub(crate) fn body(&self) -> &Bytes {
        &self.plain.body
    }

    /// The reply to a request with these headers: 304 when the client already has this version.
    pub(crate) fn reply(&self, request: &HeaderMap) -> Reply {
        let tag = &self.gzip.as_ref().filter(|_| accepts_gzip(request)).unwrap_or(&self.plain).tag;
        let mut reply = if is_known(request, tag) {
            bytes(StatusCode::NOT_MODIFIED, self.content_type.clone(), Bytes::new())
        } else {
            self.reply_in_full(request)
        };
        reply.headers_mut().insert(header::ETAG, tag.clone());
        reply.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        reply
    }

    /// The full reply without an ETag, for responses that clients must not cache.
    pub(crate) fn reply_in_full(&self, request: &HeaderMap) -> Reply {
        let gzip = self.gzip.as_ref().filter(|_| accepts_gzip(request));
        let body = gzip.unwrap_or(&self.plain).body.clone();
        let mut reply = bytes(StatusCode::OK, self.content_type.clone(), body);
        if gzip.is_some() {
            reply.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        reply.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        reply
    }
}

/// The reply with a document that caches may keep for a minute, such as public keys.
pub(crate) fn cached(document: &Document, request: &HeaderMap) -> Reply {
    with_headers(document.reply(request), vec![("cache-control", "public, max-age=60".to_owned())])
}

/// Whether the client already has this version.
fn is_known(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let lines = request.get_all(header::IF_NONE_MATCH).iter();
    let mut tags = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    // Weak comparison (RFC 9110, section 13.1.2): proxies mark tags as weak.
    tags.any(|known| known == b"*" || known.strip_prefix(b"W/").unwrap_or(known) == tag.as_bytes())
}

/// The same response, gzipped if the client accepts gzip and it is worthwhile.
pub(crate) async fn compressed(mut response: Response, request: &HeaderMap) -> Response {
    response.headers_mut().append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let size = http_body::Body::size_hint(response.body()).exact().and_then(|size| usize::try_from(size).ok());
    let worthwhile = size.is_some_and(|size| size >= WORTHWHILE_BYTES);
    if !worthwhile || !accepts_gzip(request) || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => {
            tracing::error!(%error, "could not compress a response");
            return into_response(crate::http::Problem::internal().into_reply());
        }
    };
    let body = match gzip_fast(&body).await {
        Some(gzip) => {
            head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            head.headers.remove(header::CONTENT_LENGTH);
            gzip
        }
        None => body,
    };
    into_response(http::Response::from_parts(head, body))
}

async fn gzip_fast(body: &Bytes) -> Option<Bytes> {
    if body.len() < LONG_BYTES {
        return gzip(body, Compression::fast());
    }
    let body = body.clone();
    tokio::task::spawn_blocking(move || gzip(&body, Compression::fast())).await.ok().flatten()
}

/// The gzipped body; `None` when the body is short or gzip saves less than a tenth of it.
fn gzip(body: &[u8], level: Compression) -> Option<Bytes> {
    if body.len() < WORTHWHILE_BYTES {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), level);
    let written = encoder.write_all(body).and_then(|()| encoder.finish());
    written.ok().filter(|gzip| gzip.len() < body.len() / 10 * 9).map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn text() -> String {
        "the same words over and over; ".repeat(200)
    }

    fn request(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::try_from(value).unwrap())])
    }

    fn unzipped(body: &[u8]) -> String {
        let mut text = String::new();
        flate2::read::GzDecoder::new(body).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn document_is_compressed_if_accepted_and_not_resent_if_known() {
        let document = Document::new("text/plain", text());
        let plain = document.reply(&HeaderMap::new());
        assert_eq!(plain.body(), &text());
        assert!(!plain.headers().contains_key("content-encoding"));
        let gzip = document.reply(&request(header::ACCEPT_ENCODING, "gzip"));
        assert_eq!(gzip.headers()["content-encoding"], "gzip");
        assert!(gzip.body().len() < text().len() / 10);
        assert_eq!(unzipped(gzip.body()), text());
        assert_ne!(plain.headers()["etag"], gzip.headers()["etag"], "different bytes need different tags");
        for reply in [plain, gzip] {
            assert_eq!(reply.headers()["vary"], "accept-encoding");
            let tag = reply.headers()["etag"].to_str().unwrap();
            for known in [tag.to_owned(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
                let mut headers = request(header::IF_NONE_MATCH, &known);
                if tag.contains("gzip") {
                    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
                }
                let again = document.reply(&headers);
                assert_eq!((again.status(), again.body().len()), (StatusCode::NOT_MODIFIED, 0), "{known}");
                assert_eq!(again.headers()["etag"], tag);
            }
        }
        let other = document.reply(&request(header::IF_NONE_MATCH, "\"other\""));
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn replies_are_compressed_where_it_is_worthwhile_and_wanted() {
        let gzip = request(header::ACCEPT_ENCODING, "gzip");
        // body, request, compressed
        let (long, plain) = (text().repeat(20), HeaderMap::new());
        let table =
            [(text(), &gzip, true), (long, &gzip, true), ("short".to_owned(), &gzip, false), (text(), &plain, false)];
        for (body, request, expected) in table {
            let reply = bytes(StatusCode::OK, HeaderValue::from_static("text/plain"), body.clone().into());
            let (head, sent) = compressed(into_response(reply), request).await.into_parts();
            assert_eq!(head.headers.contains_key("content-encoding"), expected, "{:.9}", body);
            assert_eq!(head.headers["vary"], "accept-encoding");
            let sent = sent.collect().await.unwrap().to_bytes();
            assert_eq!(if expected { unzipped(&sent) } else { String::from_utf8(sent.to_vec()).unwrap() }, body);
        }
    }
}
