//! `Debug` for types with secrets: it prints the fields that are named, and no others.

/// Implements `Debug` for a struct, with these fields only. Everything else in it is a secret or personal.
macro_rules! shown_fields {
    ($name:ident: $($field:ident),*) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
