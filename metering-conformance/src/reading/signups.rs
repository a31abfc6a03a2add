//! Compares all signup sessions with the model.

use metering_core::signups::SignupSession;
use metering_core::store::SignupStore;

use super::super::model::Model;
use super::super::operation::{SESSIONS, code, token};

/// Compares sessions by token and by code, including the exact text of their emails.
pub(crate) async fn signups_agree(store: &dyn SignupStore, model: &Model) {
    let email = |session: &SignupSession| session.email.as_str().to_owned();
    for (token, code) in (0..SESSIONS).map(|number| (token(number), code(number))) {
        let (found, expected) = (store.signup(&token).await.unwrap(), model.signup(&token));
        assert_eq!(found.as_ref(), expected, "the session of {token:?}");
        assert_eq!(found.as_ref().map(email), expected.map(email), "emails are stored as given");
        let found = store.signup_of_code(&code).await.unwrap();
        assert_eq!(found.as_ref(), model.signup_of_code(&code), "the session of {code}");
    }
}
