//! Bundles of entries: each with its length in front, as a big-endian 16-bit number.

/// The longest entry that a bundle can hold.
pub const MAX_ENTRY_BYTES: usize = u16::MAX as usize;

/// The entry is longer than [`MAX_ENTRY_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an entry of {0} bytes is too long for a log; at most {MAX_ENTRY_BYTES}")]
pub struct EntryTooLong(pub usize);

/// The bytes are not a bundle with the expected number of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a bundle of {0} entries")]
pub struct MalformedBundle(pub u16);

/// Appends an entry to a bundle.
///
/// # Errors
/// When it is too long; the bundle is unchanged then.
pub fn push_entry(bundle: &mut Vec<u8>, entry: &[u8]) -> Result<(), EntryTooLong> {
    let length = u16::try_from(entry.len()).map_err(|_| EntryTooLong(entry.len()))?;
    bundle.extend_from_slice(&length.to_be_bytes());
    bundle.extend_from_slice(entry);
    Ok(())
}

/// The entries of a bundle of `width` entries.
///
/// # Errors
/// When it is cut short, or has a different number of entries.
pub fn read_entries(bundle: &[u8], width: u16) -> Result<Vec<&[u8]>, MalformedBundle> {
    let mut rest = bundle;
    let mut entries = Vec::new();
    for _ in 0..width {
        let (length, after) = rest.split_first_chunk::<2>().ok_or(MalformedBundle(width))?;
        let (entry, after) =
            after.split_at_checked(u16::from_be_bytes(*length).into()).ok_or(MalformedBundle(width))?;
        entries.push(entry);
        rest = after;
    }
    if rest.is_empty() { Ok(entries) } else { Err(MalformedBundle(width)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_round_trip() {
        let longest = vec![7; MAX_ENTRY_BYTES];
        let mut bundle = Vec::new();
        for entry in [b"one".as_slice(), b"", &longest] {
            push_entry(&mut bundle, entry).unwrap();
        }
        assert_eq!(bundle[..7], *b"\x00\x03one\x00\x00");
        assert_eq!(read_entries(&bundle, 3), Ok(vec![b"one".as_slice(), b"", &longest]));
        assert_eq!(read_entries(&[], 0), Ok(vec![]));
    }

    #[test]
    fn other_bytes_are_no_bundle() {
        let mut bundle = Vec::new();
        push_entry(&mut bundle, b"one").unwrap();
        for (bytes, width) in
            [(&bundle[..4], 1), (&bundle[..1], 1), (&bundle[..], 2), (&bundle[..], 0), (&bundle[..0], 1)]
        {
            assert_eq!(read_entries(bytes, width), Err(MalformedBundle(width)));
        }
    }

    #[test]
    fn too_long_entries_are_refused() {
        let mut bundle = Vec::new();
        assert_eq!(push_entry(&mut bundle, &vec![0; 65_536]), Err(EntryTooLong(65_536)));
        assert!(bundle.is_empty());
    }
}
