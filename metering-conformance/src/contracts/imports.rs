//! The list of the contracts about accounts of other services.

/// The tests of [`ImportStore`](metering_core::store::ImportStore), in addition to those of
/// [`payments_conformance!`](crate::payments_conformance).
#[macro_export]
macro_rules! imports_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            imports::checking_an_import_writes_nothing: verified,
            imports::concurrent_imports_create_each_account_once: verified,
            imports::imported_account_is_found_as_it_was: verified,
            imports::imported_key_works_until_it_is_rotated: verified,
            imports::imported_keys_keep_their_terms: verified,
            imports::imported_transactions_are_used_up: verified,
            imports::repeated_import_changes_nothing: verified,
            imports::revoked_accounts_are_imported_revoked: verified,
            imports::used_ids_and_hashes_are_refused: verified,
            imports::what_another_account_has_is_left_out: verified,
        }
    };
}
