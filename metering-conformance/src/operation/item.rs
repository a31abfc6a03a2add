/// One posting of a batch.
#[derive(Debug, Clone)]
pub enum Item {
    /// A charge.
    Charge {
        /// The number of the key among all keys so far, or of the next key, which no account has yet.
        key: usize,
        /// The price.
        atoms: i64,
        /// The number of the line, from a small set.
        line: u8,
        /// The number of the path, from a small set.
        path: u8,
        /// The number of the request id, from a small set.
        request: Option<u8>,
        /// Lease in milliseconds, and atoms of the fallback, for a hold.
        hold: Option<(u32, i64)>,
    },
    /// An update of a hold; skipped when none was opened.
    Update {
        /// The number of the hold among all that were ever opened.
        hold: usize,
        /// The operation on it.
        step: HoldStep,
    },
    /// A refund of an accepted charge, which consumes its receipt; skipped when there is no receipt.
    Refund {
        /// The number of the receipt.
        receipt: usize,
    },
}

/// The operation on a hold.
#[derive(Debug, Clone, Copy)]
pub enum HoldStep {
    /// Capture a cost in atoms, at most what is held, or all of it.
    Capture(i64, bool),
    /// Capture the fallback.
    CaptureFallback,
    /// Capture nothing.
    Release,
    /// Capture the fallback if the lease has ended.
    Expire,
    /// Renew the lease until so many milliseconds from now.
    Renew(i64),
}
