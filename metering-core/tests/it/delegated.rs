//! Stores of tests that leave most methods to another store.

/// Implements a storage trait: first the methods that are written out, then a line for each that the store at
/// `self.$to` does. `?T` means `Option<&T>`.
macro_rules! delegated {
    (@call $this:ident, ($($to:tt)+), $method:ident($($arg:ident),*)) => {
        $this.$($to)+.$method($($arg),*).await
    };
    (
        impl<$S:ident: $Bound:ident> $Trait:ident for $Store:ident<$T:ident> by $to:tt { $($written:tt)* }
        $(
            $method:ident($($arg:ident: $(&$lent:tt)? $(?$maybe:tt)? $($owned:path)?),*) -> $returned:ty;
        )*
    ) => {
        #[async_trait::async_trait]
        impl<$S: $Bound + 'static> $Trait for $Store<$T> {
            $($written)*

            $(
                async fn $method(
                    &self,
                    $($arg: $(&$lent)? $(Option<&$maybe>)? $($owned)?),*
                ) -> ::std::result::Result<$returned, ::metering_core::StoreError> {
                    delegated!(@call self, $to, $method($($arg),*))
                }
            )*
        }
    };
}

pub(crate) use delegated;
