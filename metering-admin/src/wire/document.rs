//! Documents built from a single value.

/// Declares a document, and where each of its fields comes from.
macro_rules! document {
    (
        $(#[$($attribute:tt)*])*
        pub struct $Document:ident from $source:ident: $Source:ty;

        $($(#[$($about:tt)*])* $field:ident: $type:ty = $value:expr,)+
    ) => {
        $(#[$($attribute)*])*
        pub struct $Document {
            $($(#[$($about)*])* pub $field: $type,)+
        }

        impl From<$Source> for $Document {
            fn from($source: $Source) -> Self {
                Self { $($field: $value,)+ }
            }
        }
    };
}

pub(super) use document;
