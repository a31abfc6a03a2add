/// The value at a wanted pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::catalogue) enum ScannedValue<'v> {
    Null,
    Bool(bool),
    /// The number as written; the start of a very long one.
    Number(&'v [u8]),
    /// The start of a string, decoded, and its full length in bytes of UTF-8.
    Text(&'v [u8], u64),
    Object,
    Array,
    /// An object repeats a name on the pointer's path.
    RepeatedName,
}
