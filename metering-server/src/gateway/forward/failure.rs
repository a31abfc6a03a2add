//! Why an upstream did not respond, in words for the client.

use super::connection::MAX_HEADERS;

/// Whether the upstream sent data that is not a response.
pub(super) fn is_unreadable(error: &hyper::Error) -> bool {
    error.is_parse()
}

/// The failure of a connection to the upstream. No part of the response was forwarded.
pub(super) fn what_happened(error: &hyper::Error) -> String {
    if error.is_parse_too_large() {
        return format!("sent a response with more than {MAX_HEADERS} headers, or more than 128 KiB of them");
    }
    if error.is_parse() {
        return "sent something that is not a response of HTTP/1.1".to_owned();
    }
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        return "closed the connection before it responded".to_owned();
    }
    "broke off its response".to_owned()
}
