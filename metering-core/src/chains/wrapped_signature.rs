//! Signatures of wallets that may not be deployed yet (ERC-6492).

/// How a wrapped signature ends.
const SUFFIX: [[u8; 2]; 16] = [[0x64, 0x92]; 16];

/// The wallet's own signature inside a wrapped one; the unchanged bytes if they are not wrapped.
///
/// Around it are the call that deploys the wallet, as `abi.encode(address factory, bytes call, bytes signature)`, and
/// the suffix. A deployed wallet accepts the signature inside. The call is not used: it could be any call.
pub(super) fn unwrapped(bytes: &[u8]) -> &[u8] {
    inside(bytes).unwrap_or(bytes)
}

fn inside(bytes: &[u8]) -> Option<&[u8]> {
    let encoded = bytes.strip_suffix(SUFFIX.as_flattened())?;
    let start = word(encoded, 64)?;
    let length = word(encoded, start)?;
    let content = start.checked_add(32)?;
    encoded.get(content..content.checked_add(length)?).filter(|signature| !signature.is_empty())
}

/// The number in the 32 bytes from `at` on. `None` when there are fewer bytes, or it is not an index.
fn word(encoded: &[u8], at: usize) -> Option<usize> {
    let (high, low) = encoded.get(at..at.checked_add(32)?)?.split_at_checked(24)?;
    let low = u64::from_be_bytes(low.try_into().ok()?);
    high.iter().all(|byte| *byte == 0).then_some(usize::try_from(low).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A wrapped signature, with the parts in the order that encoders use.
    fn wrapped(call: &[u8], signature: &[u8]) -> Vec<u8> {
        let number = |number: usize| {
            let mut word = [0; 32];
            word[24..].copy_from_slice(&u64::try_from(number).unwrap().to_be_bytes());
            word.to_vec()
        };
        let padded = |bytes: &[u8]| [bytes, &vec![0; bytes.len().next_multiple_of(32) - bytes.len()]].concat();
        let after = 96 + 32 + padded(call).len();
        let head = [vec![0x11; 32], number(96), number(after)].concat();
        let parts = [head, number(call.len()), padded(call), number(signature.len()), padded(signature)];
        [&parts.concat(), SUFFIX.as_flattened()].concat()
    }

    #[test]
    fn the_wallets_own_signature_is_inside() {
        for (call, signature) in [(vec![], vec![7]), (vec![1; 33], vec![8; 65]), (vec![2; 500], vec![9; 700])] {
            assert_eq!(unwrapped(&wrapped(&call, &signature)), signature);
        }
    }

    #[test]
    fn what_is_not_wrapped_stays_as_it_is() {
        let good = wrapped(&[1; 4], &[8; 65]);
        let mut beyond = good.clone();
        beyond[95] = 0xff;
        let mut huge = good.clone();
        huge[64..72].fill(0xff);
        for bytes in [vec![7; 65], good[..good.len() - 1].to_vec(), wrapped(&[], &[]), beyond, huge] {
            assert_eq!(unwrapped(&bytes), bytes);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = unwrapped(&[&bytes, SUFFIX.as_flattened()].concat());
        }
    }
}
