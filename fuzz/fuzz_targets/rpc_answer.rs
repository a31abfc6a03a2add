//! What a source of a chain sends: batches, blocks, transactions and logs, which strangers write.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_evm::fuzzing::{read_batch, read_object};

fuzz_target!(|body: &[u8]| {
    read_batch(body);
    read_object(body);
});
