//! Reads and writes settings as text.

/// Reads and writes settings as the text that `FromStr` reads and `Display` shows.
macro_rules! as_text {
    ($($setting:ty),+) => {
        $(
            impl serde::Serialize for $setting {
                fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }

            impl<'de> serde::Deserialize<'de> for $setting {
                fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                    text.parse().map_err(serde::de::Error::custom)
                }
            }
        )+
    };
}

pub(super) use as_text;
