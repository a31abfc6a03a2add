use std::error::Error;

/// Why a benchmark has no result.
pub type Failure = Box<dyn Error + Send + Sync>;
