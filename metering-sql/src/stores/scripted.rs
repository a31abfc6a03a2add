//! The shared parts of the macros of the storage traits.

/// Implements a storage trait: first the methods that are written out, then a line for each that only runs a script.
/// The line has how to run it (`read`, `snapshot` or `write`), the signature, and the script, which takes the same
/// arguments in the same order. `?T` means `Option<&T>`.
#[doc(hidden)]
#[macro_export]
macro_rules! scripted {
    (
        use metering_core::$core:tt;
        $(use core::$core_library:tt;)?
        impl $Trait:ident for $store:ty { $($written:tt)* }
        $(
            $run:ident $method:ident($($arg:ident: $(&$lent:tt)? $(?$maybe:tt)? $($owned:path)?),*)
                -> $returned:ty = $($script:ident)::+;
        )*
    ) => {
        const _: () = {
            use $crate::private::metering_core::$core;
            $(use ::core::$core_library;)?

            type Result<T, E = $crate::private::metering_core::StoreError> = ::core::result::Result<T, E>;

            #[$crate::private::async_trait]
            impl $Trait for $store {
                $($written)*

                $(
                    async fn $method(
                        &self,
                        $($arg: $(&$lent)? $(Option<&$maybe>)? $($owned)?),*
                    ) -> Result<$returned> {
                        // Scripts may run on another thread, so they hold their arguments.
                        let args = (
                            $(
                                $(<$lent as ::std::borrow::ToOwned>::to_owned($arg),)?
                                $(Option::<&$maybe>::cloned($arg),)?
                                $(::core::convert::identity::<$owned>($arg),)?
                            )*
                        );
                        $crate::$run(self, args, |db, ($($arg,)*)| {
                            $crate::shared($crate::$($script)::+(db, $($crate::private::Lend::lend($arg)),*))
                        })
                        .await
                    }
                )*
            }
        };
    };
}
