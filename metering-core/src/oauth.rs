//! OAuth: programs that get a key by the consent of an account's owner, without seeing the owner's key.
//!
//! An access token is the secret of a child key, which a grant replaces with each refresh. The terms of that key limit
//! the program; a grant only decides who may have the next secret. Rules follow OAuth 2.1 (draft-ietf-oauth-v2-1-13)
//! for public clients: authorization codes with PKCE, and refresh tokens that rotate.

mod authorization;
mod client;
mod code_challenge;
mod grant;
mod redirect_uri;
mod token;

pub use authorization::{AuthorizationFault, RequestedAuthorization};
pub use client::{ClientDocuments, ClientMetadataError, OAuthClient, new_client_id};
pub use code_challenge::{CodeChallenge, CodeChallengeError};
pub use grant::{Grant, GrantRefusal, Redemption};
pub use redirect_uri::{RedirectUri, RedirectUriError};
pub use token::{GrantId, GrantToken, GrantTokenHash, GrantTokenKind, MalformedGrantToken};
