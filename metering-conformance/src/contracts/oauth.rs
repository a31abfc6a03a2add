//! The contracts of [`OAuthStore`](metering_core::store::OAuthStore).

/// The tests of [`OAuthStore`](metering_core::store::OAuthStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance). They need a [`FullStore`](metering_core::FullStore).
#[macro_export]
macro_rules! oauth_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            oauth_grants::a_code_gives_one_key_however_often_it_is_sent,
            oauth_grants::a_code_that_is_revoked_while_it_is_redeemed_gives_nothing,
            oauth_grants::a_refresh_keeps_the_budget_and_what_was_spent_of_it,
            oauth_grants::a_refresh_token_that_comes_twice_ends_the_access,
            oauth_grants::a_revoked_token_ends_the_access,
            oauth_grants::an_export_has_programs_and_cards,
            oauth_grants::an_owner_who_rotates_or_disables_the_key_ends_its_refreshes,
            oauth_records::a_grant_is_found_by_its_id_and_its_access_token,
            oauth_records::a_registered_client_is_found_as_it_was,
            oauth_records::a_secret_works_until_it_expires,
            oauth_records::expired_clients_and_grants_are_deleted,
        }
    };
}
