//! OAuth: gives programs keys that their owners consent to. [`oauth`](crate::oauth) has the rules.

mod consent;
mod error;
mod exchange;
mod form;
mod handle;
mod registration;
mod setup;
mod tokens;

pub use error::OAuthError;
pub use form::TokenForm;
pub use handle::OAuth;
pub(super) use setup::OAuthSetup;
