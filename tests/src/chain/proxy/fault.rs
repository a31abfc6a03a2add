//! What a proxy can be told to do to the answers of its node.

use std::time::Duration;

/// A fault, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Everything is passed on as it is.
    PassThrough,
    /// `eth_getTransactionReceipt` and `eth_getTransactionByHash` answer null.
    NullReceipts,
    /// The node is so many blocks behind: its newest, `safe` and `finalized` blocks are that much older, and blocks,
    /// receipts, transactions and logs of newer ones are not there.
    Lag(u64),
    /// What comes is no answer to the question.
    Garbage(Garbage),
    /// Every request ends with this HTTP status.
    HttpError(u16),
    /// Every call of a request is refused with this JSON-RPC error.
    RpcError(i64, &'static str),
    /// No answer ever comes.
    TimeOut,
    /// The answer comes this much later.
    Slow(Duration),
    /// The node says that it is of this chain.
    WrongChainId(u64),
    /// Blocks that are asked for by number have another hash than receipts say.
    OtherBlockHash,
    /// Values in the logs of receipts are off by one.
    TamperedReceipt,
    /// Values of transactions are off by one.
    TamperedTransaction,
    /// The next so many HTTP requests, a batch counted once, have this fault; then everything is passed on.
    FirstN(Box<Fault>, u32),
}

/// What comes instead of an answer, each with status 200.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// Nothing.
    Empty,
    /// Text that is no JSON.
    Text,
    /// A web page, as some gateways put in the way.
    Html,
    /// The first half of the right answer.
    Truncated,
    /// The right answers, to other questions by their ids.
    WrongId,
}

impl Fault {
    /// [`Fault::FirstN`], boxed.
    #[must_use]
    pub fn first(requests: u32, fault: Self) -> Self {
        Self::FirstN(Box::new(fault), requests)
    }

    /// What the next request gets; of those of [`Fault::FirstN`], one is used up.
    pub(crate) fn take_turn(&mut self) -> Self {
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
