//! The contracts of [`MemberStore`](metering_core::store::MemberStore) and
//! [`ChildAccountStore`](metering_core::store::ChildAccountStore).

/// The tests of members and child accounts, in addition to those of [`charging_conformance!`](crate::charging_conformance).
/// They need a [`FullStore`](metering_core::FullStore).
#[macro_export]
macro_rules! organisations_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            child_accounts::a_child_has_the_token_limit_of_its_parent,
            child_accounts::a_child_that_is_paying_is_not_closed,
            child_accounts::a_closed_child_gives_its_credits_back: verified,
            child_accounts::a_key_makes_one_child,
            child_accounts::a_parent_takes_back_at_most_what_it_gave: verified,
            child_accounts::a_payment_reaches_no_child_that_was_closed_meanwhile,
            child_accounts::children_are_those_of_their_parent,
            child_accounts::concurrent_moves_add_up: verified,
            child_accounts::credits_move_exactly_and_once: verified,
            child_accounts::the_usage_of_all_children_is_read_at_once,
            members::a_link_to_pass_on_needs_an_identity,
            members::an_accounts_log_has_its_newest_entries,
            members::an_erasure_takes_members_and_the_log,
            members::an_invitation_is_joined_once,
            members::an_invitation_makes_one_member,
            members::expired_invitations_are_deleted,
            members::members_are_changed_and_removed,
            members::one_person_signs_in_to_several_accounts,
        }
    };
}
