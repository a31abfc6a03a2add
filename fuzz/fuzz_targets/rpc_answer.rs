//! Responses of a chain source: batches, blocks, transactions and logs, whose content anyone can write.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metering_evm::fuzzing::{read_batch, read_object};

fuzz_target!(|body: &[u8]| {
    read_batch(body);
    read_object(body);
});
