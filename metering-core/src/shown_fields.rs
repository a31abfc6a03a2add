//! `Debug` for types with secrets or large parts: it prints the fields that are named, and no others.

/// Implements `Debug` for a struct, with these fields only. Everything else in it is secret, personal or too much to print.
#[doc(hidden)]
#[macro_export]
macro_rules! shown_fields {
    ($name:ident $(<$($lifetime:lifetime),+>)?: $($field:ident),*) => {
        impl ::std::fmt::Debug for $name $(<$($lifetime),+>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field))*
                    .finish_non_exhaustive()
            }
        }
    };
}

pub(crate) use shown_fields;

#[cfg(test)]
mod tests;
