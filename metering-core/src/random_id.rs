//! Ids of 16 random bytes, written as a prefix and 32 hexadecimal digits.

/// Implements such an id for a tuple struct of 16 bytes. `$error` is a unit struct: the text is not such an id.
macro_rules! random_id {
    ($id:ident, $error:ident, $prefix:literal) => {
        $crate::raw_bytes::raw_bytes!($id, 16);

        impl $id {
            /// A new id that cannot be guessed.
            #[must_use]
            pub fn generate(randomness: &dyn $crate::random::Randomness) -> Self {
                let mut bytes = [0; 16];
                randomness.fill(&mut bytes);
                Self(bytes)
            }
        }

        impl std::str::FromStr for $id {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                let digits = text.strip_prefix($prefix).ok_or($error)?;
                let mut bytes = [0; 16];
                hex::decode_to_slice(digits, &mut bytes).map_err(|_| $error)?;
                // One spelling per id: `hex` also reads upper-case digits.
                let id = Self(bytes);
                if id.to_string() == text { Ok(id) } else { Err($error) }
            }
        }

        impl std::fmt::Display for $id {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut digits = [0_u8; 32];
                hex::encode_to_slice(self.0, &mut digits).map_err(|_| std::fmt::Error)?;
                f.write_str($prefix)?;
                f.write_str(std::str::from_utf8(&digits).map_err(|_| std::fmt::Error)?)
            }
        }

        $crate::text_traits::text_traits!($id: Debug, Serialize);
    };
}

pub(crate) use random_id;
