//! Bundles of leaves: what is read packs to a bundle that is the same. Its accounts' leaves are numbered without gaps, and
//! their funds add up.
#![no_main]

use std::collections::HashMap;

use libfuzzer_sys::fuzz_target;
use metering_proof::{BUNDLE_LEAVES, Bundle, ChainHead, Leaf};

fuzz_target!(|bytes: &[u8]| {
    let Ok(bundle) = Bundle::unpack(bytes) else { return };
    assert!(bundle.leaves().len() <= BUNDLE_LEAVES);
    assert_eq!(Bundle::unpack(&bundle.pack()).as_ref(), Ok(&bundle));
    let mut heads: HashMap<u32, ChainHead> = HashMap::new();
    for leaf in bundle.leaves() {
        if let Leaf::Posted { account, before, amount, .. } = leaf {
            assert!(heads.get(account).is_none_or(|head| head == before));
            heads.insert(*account, before.after(*amount).expect("funds of leaves are in range"));
        }
    }
    assert_eq!(&heads, bundle.heads());
});
