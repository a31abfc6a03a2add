//! The macros that generate a test for each contract, by the trait that it is about, so that a backend tests what it
//! implements. Contracts about several traits take a [`FullStore`](metering_core::FullStore). The build script lists them.

include!(concat!(env!("OUT_DIR"), "/contracts.rs"));

/// Generates one test per contract, for a backend that has all traits of the storage contract.
///
/// Takes a closure, or a path to a function without arguments, that makes a fresh, empty store:
/// `async fn() -> (Arc<S>, G)`, where `G` is a guard that must live as long as the store.
#[macro_export]
macro_rules! store_conformance {
    ($fresh:expr) => {
        $crate::charging_conformance!($fresh);
        $crate::accounting_conformance!($fresh);
    };
}

/// The tests of [`Store`](metering_core::Store) alone, for a backend without payments and signups. Takes what
/// [`store_conformance!`](crate::store_conformance) takes.
#[macro_export]
macro_rules! charging_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { Store, $fresh }
    };
}

/// The tests of [`PaymentStore`](metering_core::PaymentStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! payments_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { PaymentStore, $fresh }
    };
}

/// The tests of [`SignupStore`](metering_core::store::SignupStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! signups_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { SignupStore, $fresh }
    };
}

/// The tests of [`OperatorStore`](metering_core::store::OperatorStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! operators_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { OperatorStore, $fresh }
    };
}

/// The tests of [`RefillStore`](metering_core::store::RefillStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! refills_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { RefillStore, $fresh }
    };
}

/// The tests of [`EventStore`](metering_core::store::EventStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! events_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { EventStore, $fresh }
    };
}

/// The tests of [`AuthorizationStore`](metering_core::store::AuthorizationStore), in addition to those of
/// [`payments_conformance!`](crate::payments_conformance).
#[macro_export]
macro_rules! authorizations_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { AuthorizationStore, $fresh }
    };
}

/// The tests of [`PriceStore`](metering_core::store::PriceStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! prices_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { PriceStore, $fresh }
    };
}

/// The tests of [`BrowserSessionStore`](metering_core::store::BrowserSessionStore), in addition to those of
/// [`charging_conformance!`](crate::charging_conformance).
#[macro_export]
macro_rules! browser_sessions_conformance {
    ($fresh:expr) => {
        $crate::contracts_of! { BrowserSessionStore, $fresh }
    };
}

/// The tests of everything else than [`charging_conformance!`](crate::charging_conformance). Takes what
/// [`store_conformance!`](crate::store_conformance) takes.
#[macro_export]
macro_rules! accounting_conformance {
    ($fresh:expr) => {
        $crate::payments_conformance!($fresh);
        $crate::signups_conformance!($fresh);
        $crate::operators_conformance!($fresh);
        $crate::refills_conformance!($fresh);
        $crate::events_conformance!($fresh);
        $crate::authorizations_conformance!($fresh);
        $crate::prices_conformance!($fresh);
        $crate::browser_sessions_conformance!($fresh);
        // Contracts about rows that one trait writes and another one reads.
        $crate::contracts_of! { FullStore, $fresh }
    };
}

/// One test per contract of a list. After one that is marked as `verified`, the store's books must add up.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    // The closures turn a store of any type into the trait object that the contract takes.
    (@run $fresh:expr; $noun:ident::$contract:ident) => {
        $crate::run($fresh, |store| $crate::$noun::$contract(store));
    };
    (@run $fresh:expr; $noun:ident::$contract:ident: verified) => {
        $crate::run_verified($fresh, |store| $crate::$noun::$contract(store));
    };
    ($fresh:expr; $($noun:ident::$contract:ident $(: $verified:ident)?,)+) => {
        $(
            #[test]
            fn $contract() {
                $crate::conformance_tests! { @run $fresh; $noun::$contract $(: $verified)? }
            }
        )+
    };
}
