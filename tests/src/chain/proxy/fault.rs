//! The faults that a proxy can inject into its node's responses.

/// A fault, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Everything is forwarded unchanged.
    PassThrough,
    /// `eth_getTransactionReceipt` and `eth_getTransactionByHash` return null.
    NullReceipts,
    /// The node is this many blocks behind: its newest, `safe` and `finalized` blocks are that much older, and newer
    /// blocks, with their receipts, transactions and logs, are missing.
    Lag(u64),
    /// The response is not a valid response to the request.
    Garbage(Garbage),
    /// Every request fails with this HTTP status.
    HttpError(u16),
    /// Every call of a request fails with this JSON-RPC error.
    RpcError(i64, &'static str),
    /// No response ever comes.
    Timeout,
    /// The node reports this chain id.
    WrongChainId(u64),
    /// Blocks requested by number have another hash than the one in receipts.
    OtherBlockHash,
    /// Values in the logs of receipts are off by one.
    TamperedReceipt,
    /// Values of transactions are off by one.
    TamperedTransaction,
    /// This many HTTP requests (a batch counts once) have this fault; after them, everything is forwarded.
    FirstN(Box<Fault>, u32),
}

/// The replacements of a response, each with status 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// Nothing.
    Empty,
    /// Text that is not JSON.
    Text,
    /// A web page, such as some gateways return.
    Html,
    /// The first half of the correct response.
    Truncated,
    /// The correct responses with the wrong ids.
    WrongId,
}

impl Fault {
    /// [`Fault::FirstN`], boxed.
    #[must_use]
    pub fn first(requests: u32, fault: Self) -> Self {
        Self::FirstN(Box::new(fault), requests)
    }

    /// The fault for the next request; uses up one of [`Fault::FirstN`].
    pub(crate) fn next(&mut self) -> Self {
        match self {
            Self::FirstN(fault, left @ 1..) => {
                *left -= 1;
                (**fault).clone()
            }
            Self::FirstN(_, 0) => Self::PassThrough,
            other => other.clone(),
        }
    }
}
