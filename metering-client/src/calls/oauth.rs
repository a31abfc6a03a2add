//! OAuth, as the consent page uses it. OAuth clients use the endpoints of the RFCs.

use metering_core::call;
use metering_core::wire::call::Access;
use metering_core::wire::{AuthorizationDocument, AuthorizationRequest, ConsentRequest, ConsentResponse};

use super::access::KEY_OR_WALLET;

call! {
    /// Describe an authorization request
    ///
    /// For the consent page: the client, its requested scopes, and its redirect URI. If the client is unknown, or may
    /// not redirect there, the request is refused, and nothing is sent to the client.
    DescribeAuthorization("describe_authorization") = POST "/oauth/requests" in "oauth" for Access::ANYONE;
    takes((), AuthorizationRequest);
    returns(200, "The client's request": AuthorizationDocument)
        or(NotFound: "this service offers no OAuth", RateLimited, StorageUnavailable);

    /// Give a program access
    ///
    /// For the consent page: the program gets a child of the caller's key, with these terms, when it redeems the code.
    /// Needs the scope `manage`. The scopes `call`, `read` and `manage` can be given.
    Consent("consent") = POST "/oauth/consents" in "oauth" for KEY_OR_WALLET;
    takes((), ConsentRequest);
    returns(200, "The URL to send the browser to": ConsentResponse)
        or(NotFound: "this service offers no OAuth", RateLimited, OutcomeUnknown);
}
