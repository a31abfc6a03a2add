//! Types that are one text to users, stores and JSON.

/// Implements traits of a type by its text: `Display` of its only field, `Debug` and `Serialize` with the same text,
/// and `Deserialize` by its `FromStr`.
#[doc(hidden)]
#[macro_export]
macro_rules! text_traits {
    (@Display $Type:ty) => {
        impl ::std::fmt::Display for $Type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }
    };
    (@Debug $Type:ty) => {
        impl ::std::fmt::Debug for $Type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
    (@Serialize $Type:ty) => {
        impl ::serde::Serialize for $Type {
            fn serialize<S: ::serde::Serializer>(&self, serializer: S) -> ::std::result::Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
    (@Deserialize $Type:ty) => {
        impl<'de> ::serde::Deserialize<'de> for $Type {
            fn deserialize<D: ::serde::Deserializer<'de>>(deserializer: D) -> ::std::result::Result<Self, D::Error> {
                let text = <::std::string::String as ::serde::Deserialize<'de>>::deserialize(deserializer)?;
                text.parse().map_err(::serde::de::Error::custom)
            }
        }
    };
    ($Type:ty: $($Trait:ident),+) => {
        $($crate::text_traits!(@$Trait $Type);)+
    };
}

pub(crate) use text_traits;
