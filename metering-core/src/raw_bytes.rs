//! Ids, hashes and addresses are tuple structs of bytes, which stores write and read.

/// Makes such a struct from its bytes, and shows them.
macro_rules! raw_bytes {
    ($name:ident, $length:literal) => {
        impl $name {
            /// Makes it from its bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; $length]) -> Self {
                Self(bytes)
            }

            /// Its bytes.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; $length] {
                &self.0
            }
        }
    };
}

pub(crate) use raw_bytes;
