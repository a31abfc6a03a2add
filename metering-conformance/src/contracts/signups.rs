//! The contracts of [`SignupStore`](metering_core::store::SignupStore).

/// The tests of [`SignupStore`](metering_core::store::SignupStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! signups_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            email_links::a_link_is_opened_only_for_an_account_that_can_use_it,
            email_links::a_newer_link_replaces_the_older_of_its_purpose,
            email_links::a_pending_address_is_held_by_nobody: verified,
            email_links::a_recovery_link_replaces_the_key_once: verified,
            email_links::an_address_is_verified_once: verified,
            email_links::an_address_verified_elsewhere_is_refused,
            email_links::an_unchecked_address_is_verified_without_credits,
            email_links::concurrent_clicks_grant_the_credits_once: verified,
            email_links::concurrent_recoveries_give_one_key,
            email_links::expired_links_are_deleted,
            email_links::expired_links_do_nothing,
            email_links::links_of_revoked_accounts_do_nothing,
            email_links::of_accounts_with_one_address_one_gets_it: verified,
            signups::a_redemption_beyond_range_changes_nothing,
            signups::a_session_is_approved_once_in_time,
            signups::a_session_is_found_as_it_was_opened,
            signups::a_session_is_redeemed_once: verified,
            signups::a_session_needs_a_free_email_and_code,
            signups::a_solution_is_used_once,
            signups::concurrent_redemptions_create_one_account,
            signups::email_taken_since_opening_is_refused,
            signups::expired_sessions_are_deleted,
            signups::unapproved_session_is_not_redeemed,
        }
    };
}
