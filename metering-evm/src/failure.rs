//! Failures of a source, and which of them are transient.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;

/// The method name in errors about a whole batch.
pub(crate) const BATCH: &str = "the batch";

/// Why a request to a source failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    /// It serves another chain.
    #[error("it serves chain {0}")]
    WrongChain(u64),
    /// It could not be reached, or closed the connection.
    #[error("{0}")]
    Transport(String),
    /// It took too long.
    #[error("timed out")]
    TimedOut,
    /// It responded with an HTTP error.
    #[error("HTTP status {status}")]
    Http {
        /// The status.
        status: StatusCode,
        /// How long to wait before a retry, if the source sent that.
        retry_after: Option<Duration>,
    },
    /// Its response exceeds the size limit.
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
    /// Its response does not conform to the specification.
    #[error("malformed response to {method}: {problem}")]
    Malformed {
        /// The method of the request.
        method: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// It responded to a call with a JSON-RPC error.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// It responded to a batch of several calls with one JSON-RPC error.
    #[error("{0} (for a batch)")]
    Refused(RpcError),
    /// It has not reached the requested block.
    #[error("it is behind: it has not reached block {0}")]
    Behind(u64),
    /// The chain has no block with this tag yet.
    #[error("it has no {0} block yet")]
    NotYet(&'static str),
    /// The receipt is from before EIP-658 and does not say whether the transaction succeeded.
    #[error("the receipt has no status (EIP-658)")]
    NoStatus,
}

/// An error response of a source (JSON-RPC 2.0, section 5.1; codes: EIP-1474).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RpcError {
    /// Its code.
    pub(crate) code: i64,
    /// Its message.
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn malformed(method: &'static str, problem: impl fmt::Display) -> Self {
        Self::Malformed { method, problem: problem.to_string() }
    }

    /// Whether a retry of the same request may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Transport(_) | Self::TimedOut | Self::Malformed { .. } => true,
            Self::Http { status, .. } => is_transient(*status),
            // A response that is too large for the source will be too large on a retry as well.
            Self::Rpc(error) => error.is_transient() && !error.is_too_large(),
            Self::Refused(error) => error.is_transient() && !error.is_too_large() && !error.is_about_batches(),
            Self::WrongChain(_) | Self::TooLarge(_) | Self::Behind(_) | Self::NotYet(_) | Self::NoStatus => false,
        }
    }

    /// Whether the source works, but its response about this subject cannot be read, now or later.
    pub(crate) fn is_about_the_subject(&self) -> bool {
        matches!(self, Self::NoStatus) || self.is_too_large()
    }

    /// Whether the source works, but cannot serve this request: the subject is unreadable, or it has not reached the
    /// block yet.
    pub(crate) fn is_of_a_working_source(&self) -> bool {
        self.is_about_the_subject() || matches!(self, Self::Behind(_) | Self::NotYet(_))
    }

    /// Whether the source was not reached at all.
    pub(crate) const fn is_unreached(&self) -> bool {
        matches!(self, Self::Transport(_))
    }

    /// Whether the source may be refusing the size of the batch rather than one of its calls.
    pub(crate) fn may_be_of_the_batch(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Http { status, .. } => !is_about_the_client(*status),
            Self::Malformed { method, .. } => *method == BATCH,
            _ => false,
        }
    }

    /// Whether the source refuses the number of blocks, whatever its message: it responds, and does not ask for a retry
    /// later.
    pub(crate) fn may_be_of_the_range(&self) -> bool {
        match self {
            Self::TooLarge(_) => true,
            Self::Http { status, .. } => !is_transient(*status) && !is_about_the_client(*status),
            Self::Rpc(error) | Self::Refused(error) => error.is_too_large() || !error.asks_to_retry_later(),
            _ => false,
        }
    }

    /// Whether a smaller request might succeed.
    pub(crate) fn is_too_large(&self) -> bool {
        match self {
            Self::TooLarge(_) => true,
            Self::Http { status, .. } => *status == StatusCode::PAYLOAD_TOO_LARGE,
            Self::Rpc(error) => error.is_too_large(),
            _ => false,
        }
    }
}

/// Whether an HTTP status is about the client or the URL, and not about the request.
fn is_about_the_client(status: StatusCode) -> bool {
    const STATUSES: [StatusCode; 5] = [
        StatusCode::UNAUTHORIZED,
        StatusCode::PAYMENT_REQUIRED,
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    status.is_redirection() || STATUSES.contains(&status)
}

/// Whether an HTTP status is transient.
pub(crate) fn is_transient(status: StatusCode) -> bool {
    status.is_server_error() || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

impl RpcError {
    /// Internal error, limit exceeded, and the messages of providers whose node is busy or lags behind others.
    fn is_transient(&self) -> bool {
        const CODES: [i64; 3] = [-32_603, -32_005, 429];
        CODES.contains(&self.code) && !self.is_revert() || self.asks_to_retry_later()
    }

    /// Whether it says that the source is busy or behind. Error codes are not reliable for this.
    fn asks_to_retry_later(&self) -> bool {
        const TOO_MANY_REQUESTS: i64 = 429;
        const WORDS: [&str; 9] = [
            "header not found",
            "missing trie node",
            "rate limit",
            "too many requests",
            "limit exceeded",
            "timeout",
            "timed out",
            "try again",
            "temporarily",
        ];
        self.code == TOO_MANY_REQUESTS || self.says(&WORDS)
    }

    /// Whether it is about batching: the batch is too large, or the source supports none.
    pub(crate) fn is_about_batches(&self) -> bool {
        self.says(&["batch"])
    }

    /// Whether a range of blocks or its response was too large for the source. There is no code for this: every
    /// provider has a different message, some with the code of a rate limit.
    pub(crate) fn is_too_large(&self) -> bool {
        const WORDS: [&str; 10] = [
            "block range",
            "blocks range",
            "range is too",
            "range too",
            "more than",
            "too many results",
            "too many logs",
            "max results",
            "too large",
            "too big",
        ];
        let too_often = self.says(&["per second", "rate limit", "too many requests"]);
        let exceeds = self.says(&["exceed"]) && self.says(&["result", "response size", "logs", "blocks"]);
        !too_often && (exceeds || self.says(&WORDS))
    }

    /// Whether a contract reverted the call: a result of the contract, not a failure of the source. Contracts without
    /// the called function revert, or fail in one of the ways from before `REVERT` existed (EIP-140).
    pub(crate) fn is_revert(&self) -> bool {
        const EXECUTION_REVERTED: i64 = 3;
        const WORDS: [&str; 6] =
            ["revert", "invalid opcode", "invalid jump", "stack underflow", "vm execution error", "out of gas"];
        self.code == EXECUTION_REVERTED || self.says(&WORDS)
    }

    pub(crate) fn says(&self, words: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        words.iter().any(|word| message.contains(word))
    }
}

impl std::error::Error for RpcError {}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error {}: {}", self.code, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_errors_are_classified_by_message() {
        // code, message, transient, too much, revert
        let table = [
            (-32_005, "limit exceeded", true, false, false),
            (-32_005, "query returned more than 10000 results", false, true, false),
            (-32_603, "Internal error", true, false, false),
            (-32_603, "execution reverted", false, false, true),
            (429, "Your app has exceeded its compute units per second capacity", true, false, false),
            (-32_005, "more than 25 requests per second", true, false, false),
            (-32_000, "header not found", true, false, false),
            (-32_000, "execution reverted", false, false, true),
            (3, "execution reverted: nope", false, false, true),
            (-32_015, "VM execution error.", false, false, true),
            (-32_000, "invalid opcode: INVALID", false, false, true),
            (-32_600, "eth_getLogs is limited to a 10,000 blocks range", false, true, false),
            (
                -32_602,
                "Log response size exceeded. You can make requests with up to a 2K block range",
                false,
                true,
                false,
            ),
            (-32_000, "exceed maximum block range: 5000", false, true, false),
            (-32_000, "query exceeds max results 20000", false, true, false),
            (-32_000, "query timeout exceeded. Consider reducing your block range.", false, true, false),
            (-32_008, "Response is too big", false, true, false),
            (-32_601, "the method does not exist", false, false, false),
            (-32_602, "invalid params", false, false, false),
        ];
        for (code, message, transient, too_much, revert) in table {
            let error = RpcError { code, message: message.to_owned() };
            assert_eq!(error.is_revert(), revert, "{error}");
            let failure = Failure::Rpc(error);
            assert_eq!((failure.is_transient(), failure.is_too_large()), (transient, too_much), "{failure}");
        }
    }

    #[test]
    fn refusals_of_batches_and_ranges_are_told_from_failures_of_the_source() {
        let rpc = |code, message: &str| RpcError { code, message: message.to_owned() };
        let status = |status| {
            let status = StatusCode::from_u16(status).unwrap();
            Failure::Http { status, retry_after: None }
        };
        let malformed = |method| Failure::malformed(method, "no");
        let batch = "Batch of more than 3 requests are not allowed";
        // failure, may be of the batch, may be of the range, transient, about the subject
        let table = [
            (Failure::Refused(rpc(-32_000, batch)), true, true, false, false),
            (Failure::Refused(rpc(-32_005, "batch limit exceeded")), true, false, false, false),
            (Failure::Refused(rpc(-32_005, "limit exceeded")), true, false, true, false),
            (Failure::Rpc(rpc(-32_600, "limited to a 5 range")), false, true, false, false),
            (Failure::Rpc(rpc(-32_603, "limited to a 5 range")), false, true, true, false),
            (Failure::Rpc(rpc(-32_602, "limit the query to at most 1000 blocks")), false, true, false, false),
            (Failure::Rpc(rpc(-32_008, "Response is too big")), false, true, false, true),
            (Failure::Rpc(rpc(429, "slow down")), false, false, true, false),
            (Failure::Rpc(rpc(-32_000, "header not found")), false, false, true, false),
            (status(500), true, false, true, false),
            (status(400), true, true, false, false),
            (status(413), true, true, false, true),
            (status(401), false, false, false, false),
            (status(429), false, false, true, false),
            (malformed(BATCH), true, false, true, false),
            (malformed("eth_getLogs"), false, false, true, false),
            (Failure::TimedOut, false, false, true, false),
            (Failure::Behind(7), false, false, false, false),
            (Failure::WrongChain(5), false, false, false, false),
        ];
        for (failure, of_batch, of_range, transient, of_subject) in table {
            let found = (failure.may_be_of_the_batch(), failure.may_be_of_the_range());
            assert_eq!(found, (of_batch, of_range), "{failure}");
            assert_eq!((failure.is_transient(), failure.is_about_the_subject()), (transient, of_subject), "{failure}");
        }
    }

    #[test]
    fn busy_http_statuses_are_transient_and_refusals_are_not() {
        // status, transient
        let table =
            [(429, true), (500, true), (502, true), (503, true), (408, true), (400, false), (401, false), (413, false)];
        for (status, transient) in table {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(Failure::Http { status, retry_after: None }.is_transient(), transient, "{status}");
        }
    }
}
