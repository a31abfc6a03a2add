//! Words of 32 bytes, written as `0x` and 64 hexadecimal digits. Parsed case-insensitively, displayed in lower case.

/// Implements such a word for a tuple struct of 32 bytes. `$error` is a unit struct: the text is not such a word.
macro_rules! hex_word {
    ($word:ident, $error:ident) => {
        $crate::raw_bytes::raw_bytes!($word, 32);

        impl std::str::FromStr for $word {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                let digits = text.strip_prefix("0x").ok_or($error)?;
                let mut bytes = [0; 32];
                hex::decode_to_slice(digits, &mut bytes).map_err(|_| $error)?;
                Ok(Self(bytes))
            }
        }

        impl std::fmt::Display for $word {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "0x{}", hex::encode(self.0))
            }
        }

        $crate::text_traits::text_traits!($word: Debug);
    };
}

pub(crate) use hex_word;
