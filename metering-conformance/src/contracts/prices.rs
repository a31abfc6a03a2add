//! The contracts of [`PriceStore`](metering_core::store::PriceStore).

/// The tests of [`PriceStore`](metering_core::store::PriceStore). Takes what
/// [`store_conformance!`](crate::store_conformance) takes.
#[macro_export]
macro_rules! prices_conformance {
    ($fresh:expr) => {
        $crate::conformance_tests! { $fresh;
            prices::a_cancelled_version_never_takes_effect,
            prices::a_large_catalogue_is_stored_byte_by_byte,
            prices::a_version_is_found_as_it_was_recorded,
            prices::concurrent_records_get_numbers_without_gaps,
            prices::files_are_not_taken_once_an_applied_version_is_in_force,
            prices::only_what_is_in_force_or_later_is_read,
            prices::the_same_catalogue_is_recorded_once,
            prices::two_versions_are_not_applied_for_the_same_time,
        }
    };
}
