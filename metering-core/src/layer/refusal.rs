//! The response to a request that is refused, with offers if it can be paid for.

use http::{Response, Uri};

use crate::catalogue::route::Route;
use crate::error::Error;
use crate::service::{ChallengeClient, Offers, RequestPayment};

pub(super) fn response<R: From<String>>(
    offers: Offers<'_>,
    (uri, route): (&Uri, Option<&Route>),
    error: &Error,
    client: ChallengeClient,
    presented: Option<&dyn RequestPayment>,
) -> Response<R> {
    let mut notice = offers.notice(error, offers.resource(uri.path(), uri.query(), route), presented);
    notice.headers.extend(offers.challenges(error, client, presented));
    error.to_response_with(notice)
}
