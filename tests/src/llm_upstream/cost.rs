//! The true cost of a request, in whole atoms. All prices of the shipped catalogue are whole numbers of atoms.

/// The APIs, as distinguished by their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    Chat,
    Completions,
    Embeddings,
    Images,
    Responses,
    Messages,
    CountTokens,
    Gemini,
    GeminiCount,
}

impl Api {
    pub(super) fn of(path: &str) -> Option<Self> {
        Some(match path {
            _ if path.ends_with("enerateContent") => Self::Gemini,
            _ if path.ends_with(":countTokens") => Self::GeminiCount,
            _ if path.ends_with("/chat/completions") => Self::Chat,
            _ if path.ends_with("/completions") => Self::Completions,
            _ if path.ends_with("/embeddings") => Self::Embeddings,
            _ if path.ends_with("/images/generations") => Self::Images,
            _ if path.ends_with("/responses") => Self::Responses,
            _ if path.ends_with("/messages") => Self::Messages,
            _ if path.ends_with("/messages/count_tokens") => Self::CountTokens,
            _ => return None,
        })
    }

    const fn rates(self) -> Rates {
        match self {
            Self::Chat | Self::Completions | Self::Responses | Self::Messages | Self::Gemini => {
                Rates { input: 7_200, cached: 720, cache_write: 9_000, cache_write_1h: 14_400, output: 72_000 }
            }
            Self::Embeddings => Rates { input: 144, ..Rates::NONE },
            Self::Images => Rates { input: 36_000, output: 288_000, ..Rates::NONE },
            Self::CountTokens | Self::GeminiCount => Rates::NONE,
        }
    }
}

/// Atoms for each token: a credit is 7,200,000,000 atoms, so a millionth of one is 7,200.
struct Rates {
    input: u64,
    cached: u64,
    cache_write: u64,
    cache_write_1h: u64,
    output: u64,
}

impl Rates {
    const NONE: Self = Self { input: 0, cached: 0, cache_write: 0, cache_write_1h: 0, output: 0 };
}

/// A call of a paid tool, such as a web search: a hundredth of a credit.
const TOOL_CALL_ATOMS: u64 = 72_000_000;

/// The tokens of one request, and the factors of their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    /// Input tokens that were neither read from a cache nor written to one.
    pub(super) input: u64,
    pub(super) cached: u64,
    pub(super) cache_write: u64,
    pub(super) cache_write_1h: u64,
    /// All output tokens of all choices, those of reasoning too.
    pub(super) output: u64,
    pub(super) reasoning: u64,
}

impl Tokens {
    pub(super) const fn all_input(&self) -> u64 {
        self.input + self.cached + self.cache_write + self.cache_write_1h
    }

    pub(super) const fn cost_atoms(&self, api: Api) -> u64 {
        let rates = api.rates();
        self.input * rates.input
            + self.cached * rates.cached
            + self.cache_write * rates.cache_write
            + self.cache_write_1h * rates.cache_write_1h
            + self.output * rates.output
    }
}

pub(super) const fn tool_calls(count: u64) -> u64 {
    count * TOOL_CALL_ATOMS
}
