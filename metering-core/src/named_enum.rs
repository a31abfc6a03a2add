//! Enums whose variants have names.

/// Declares an enum whose variants have names on the wire, in documents and in stores: `Variant = "name"`. Each is
/// declared in one place; `ALL`, `as_str`, `from_name`, `Display` and `Serialize` are generated from that. Variants
/// that are `unlisted` are not in `ALL`. With `parsed as Error`, the enum also has `FromStr`.
#[doc(hidden)]
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident {
            $($(#[$of:meta])* $Variant:ident = $name:literal,)+
        }
        $(unlisted { $($(#[$of_unlisted:meta])* $Unlisted:ident = $unlisted:literal,)+ })?
        $(parsed as $Error:ident)?
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Enum {
            $($(#[$of])* $Variant,)+
            $($($(#[$of_unlisted])* $Unlisted,)+)?
        }

        impl $Enum {
            /// Every one, in declaration order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$Variant),+];

            /// The name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)+
                    $($(Self::$Unlisted => $unlisted,)+)?
                }
            }

            /// The one with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$Variant),)+
                    $($($unlisted => Some(Self::$Unlisted),)+)?
                    _ => None,
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $Enum {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        $(impl std::str::FromStr for $Enum {
            type Err = $Error;

            fn from_str(text: &str) -> Result<Self, $Error> {
                Self::from_name(text).ok_or($Error)
            }
        })?
    };
}

pub(crate) use named_enum;

#[cfg(test)]
mod tests {
    use crate::charging::hold::SettleReason;

    #[test]
    fn a_variant_has_one_name_everywhere() {
        for reason in SettleReason::ALL {
            assert_eq!(SettleReason::from_name(reason.as_str()), Some(reason));
            assert_eq!(reason.to_string(), reason.as_str());
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert_eq!(SettleReason::from_name("Report"), None, "it is written as declared");
        assert_eq!(SettleReason::from_name(""), None);
    }
}
