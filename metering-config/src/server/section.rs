//! Declares sections of the configuration.

/// Declares a section with its keys, all public. A key without a default has the default of its type.
macro_rules! section {
    (@default) => {
        Default::default()
    };
    (@default $default:expr) => {
        $default
    };
    (
        $(#[$attribute:meta])*
        pub struct $Section:ident;

        $($(#[$about:meta])* $key:ident: $type:ty $(= $default:expr)?,)+
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Section {
            $($(#[$about])* pub $key: $type,)+
        }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($key: section!(@default $($default)?),)+ }
            }
        }
    };
}

pub(super) use section;
