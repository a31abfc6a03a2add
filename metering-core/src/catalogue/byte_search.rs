//! Finds a byte in a long text, many bytes at a time: the bodies that reports are read from are mostly long strings.

/// How many bytes are looked at together.
const CHUNK_BYTES: usize = 32;

/// The position of the first byte that `is_wanted`.
pub(super) fn position(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> Option<usize> {
    let (chunks, _) = bytes.as_chunks::<CHUNK_BYTES>();
    // Every byte of a chunk is looked at, because a loop without an early exit is compiled to vector instructions.
    let has_none =
        |chunk: &&[u8; CHUNK_BYTES]| chunk.iter().fold(0_u8, |any, byte| any | u8::from(is_wanted(*byte))) == 0;
    let skipped = chunks.iter().take_while(has_none).count() * CHUNK_BYTES;
    let found = bytes[skipped..].iter().position(|byte| is_wanted(*byte))?;
    Some(skipped + found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_byte_is_found_wherever_it_is() {
        for length in 0..3 * CHUNK_BYTES + 2 {
            let mut bytes = vec![b'x'; length];
            assert_eq!(position(&bytes, |byte| byte == b'"'), None, "{length}");
            for first in (0..length).rev() {
                bytes[first] = b'"';
                assert_eq!(position(&bytes, |byte| byte == b'"'), Some(first), "{length}");
            }
        }
    }
}
