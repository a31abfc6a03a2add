//! The source of randomness for secrets and ids.

use std::cell::RefCell;
use std::fmt;

/// The digits of base 62, in the order of their values.
pub(crate) const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// A source of unpredictable bytes.
///
/// Keys are made from it, so outside of tests it must be cryptographically secure.
///
/// In programs, use [`SystemRandomness`]. A test can use its own:
///
/// ```
/// use metering_core::{AccountId, Randomness};
///
/// /// The same bytes every time, so that a test knows the ids in advance.
/// #[derive(Debug)]
/// struct Fixed(u8);
///
/// impl Randomness for Fixed {
///     fn fill(&self, bytes: &mut [u8]) {
///         bytes.fill(self.0);
///     }
/// }
///
/// assert_eq!(AccountId::generate(&Fixed(10)).as_str(), "org_AAAAAAAAAAAAAAAAAAAA");
/// ```
pub trait Randomness: Send + Sync + fmt::Debug {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// The operating system's random source.
///
/// Requests for 16 bytes, the size of an id, come from a buffer of the current thread that is refilled with one system
/// call: every HTTP request has an id, and a system call takes longer than the rest of making one.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandomness;

/// The bytes of an id.
const ID_BYTES: usize = 16;
/// How many ids one refill of the buffer provides.
const BUFFERED_IDS: usize = 32;

/// Random bytes that were not used yet. Used ones are overwritten.
struct IdBuffer {
    bytes: [u8; ID_BYTES * BUFFERED_IDS],
    left: usize,
}

thread_local! {
    static ID_BUFFER: RefCell<IdBuffer> =
        const { RefCell::new(IdBuffer { bytes: [0; ID_BYTES * BUFFERED_IDS], left: 0 }) };
}

impl Randomness for SystemRandomness {
    /// # Panics
    /// When the operating system cannot provide randomness: a key made without it could be guessed.
    fn fill(&self, bytes: &mut [u8]) {
        match <&mut [u8; ID_BYTES]>::try_from(&mut *bytes) {
            Ok(id) => ID_BUFFER.with_borrow_mut(|buffer| *id = buffer.next()),
            Err(_) => read(bytes),
        }
    }
}

impl IdBuffer {
    fn next(&mut self) -> [u8; ID_BYTES] {
        if self.left == 0 {
            read(&mut self.bytes);
            self.left = BUFFERED_IDS;
        }
        self.left -= 1;
        let (ids, _) = self.bytes.as_chunks_mut();
        std::mem::take(&mut ids[self.left])
    }
}

fn read(bytes: &mut [u8]) {
    getrandom::fill(bytes).expect("the operating system must provide randomness");
}

/// A string of `digits` base-62 digits, each equally likely.
pub fn random_digits(randomness: &dyn Randomness, digits: usize) -> String {
    let mut text = String::with_capacity(digits);
    push_base62(randomness, digits, &mut text);
    text
}

/// Appends `digits` base-62 digits to `text`, each equally likely.
pub(crate) fn push_base62(randomness: &dyn Randomness, digits: usize, text: &mut String) {
    // The largest multiple of 62 in a byte; larger values would favour the first digits.
    const FAIR_BELOW: u8 = 248;
    let mut pool = zeroize::Zeroizing::new([0_u8; 64]);
    let wanted = text.len() + digits;
    while text.len() < wanted {
        randomness.fill(pool.as_mut_slice());
        let missing = wanted - text.len();
        text.extend(
            pool.iter()
                .filter(|byte| **byte < FAIR_BELOW)
                .take(missing)
                .map(|byte| char::from(BASE62[usize::from(byte % 62)])),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_thread_differ_and_their_bytes_are_not_kept() {
        let draw = || {
            let mut id = [0; ID_BYTES];
            SystemRandomness.fill(&mut id);
            id
        };
        let ids: std::collections::HashSet<_> = (0..10 * BUFFERED_IDS).map(|_| draw()).collect();
        assert_eq!(ids.len(), 10 * BUFFERED_IDS);
        let last = draw();
        ID_BUFFER.with_borrow(|buffer| assert!(buffer.bytes.as_chunks::<ID_BYTES>().0.iter().all(|id| *id != last)));
    }

    #[test]
    fn every_digit_is_drawn_and_two_draws_differ() {
        let mut text = String::new();
        push_base62(&SystemRandomness, 20_000, &mut text);
        assert_eq!(text.len(), 20_000);
        for digit in BASE62 {
            let count = text.bytes().filter(|byte| byte == digit).count();
            // 322 are expected, with a standard deviation of 18; the bounds are ten of those away.
            assert!((142..=502).contains(&count), "{digit}: {count}");
        }
        let mut other = String::new();
        push_base62(&SystemRandomness, 20_000, &mut other);
        assert_ne!(text, other);
    }
}
