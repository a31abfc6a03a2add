//! The contracts of [`BrowserSessionStore`](metering_core::store::BrowserSessionStore).

/// The tests of [`BrowserSessionStore`](metering_core::store::BrowserSessionStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! browser_sessions_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            browser_sessions::a_browser_session_is_found_as_it_was_opened,
            browser_sessions::a_browser_session_needs_a_live_secret,
            browser_sessions::concurrent_sessions_keep_to_the_limit,
            browser_sessions::expired_browser_sessions_are_deleted,
            browser_sessions::one_session_too_many_ends_the_least_recently_used,
            browser_sessions::sessions_are_ended_by_account_and_id,
            browser_sessions::the_use_of_a_session_is_stored,
        }
    };
}
