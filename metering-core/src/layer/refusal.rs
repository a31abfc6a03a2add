//! The response to a request that is refused, with offers if it can be paid for.

use http::{Response, Uri};

use crate::catalogue::route::Route;
use crate::error::Error;
use crate::service::{ChallengeClient, Offers, RequestPayment, RequestedResource};

pub(super) fn response<R: From<String>>(
    offers: Offers<'_>,
    (uri, route): (&Uri, Option<&Route>),
    error: &Error,
    client: ChallengeClient,
    presented: Option<&dyn RequestPayment>,
) -> Response<R> {
    let is_held = route.is_some_and(|route| route.usage_price().is_some());
    let asked = RequestedResource { is_held, ..offers.resource(uri.path(), uri.query(), route) };
    let mut notice = offers.notice(error, asked, presented);
    notice.headers.extend(offers.challenges(error, client, presented));
    error.to_response_with(notice)
}
