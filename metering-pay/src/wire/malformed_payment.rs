//! Why a payment on the wire cannot be read.

/// Why a payment, or a sign-in of a wallet, cannot be read. Nothing was taken; the response is a 400, or a 402 with new
/// challenges for a credential of MPP. It never repeats the client's input, because anyone who has a signed
/// authorization can execute it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedPayment {
    /// There is more than one payment.
    #[error("the request has a payment in {first} and another in {second}; send only one of them. Nothing was taken.")]
    Several {
        /// The place of the first.
        first: &'static str,
        /// The place of the second; the same if it was sent twice there.
        second: &'static str,
    },
    /// It is too long.
    #[error("{what} is longer than {max} bytes; send only the fields of the offer that you accept. Nothing was taken.")]
    TooLong {
        /// The source: the name of a header, or of a field of a message.
        what: &'static str,
        /// The most bytes that are read.
        max: usize,
    },
    /// It is not base64 of a JSON object.
    #[error("{what} must be {encoding} of a JSON object. Nothing was taken.")]
    Encoding {
        /// The source.
        what: &'static str,
        /// The base64 to use.
        encoding: &'static str,
    },
    /// It is not a JSON object.
    #[error("{what} must be a JSON object. Nothing was taken.")]
    NotAnObject {
        /// The source.
        what: &'static str,
    },
    /// A field is missing, or has the wrong form.
    #[error("{what}: the field {field} {problem}. Nothing was taken.")]
    Field {
        /// The source.
        what: &'static str,
        /// The field's path, such as `payload.authorization.value`.
        field: String,
        /// Its required form.
        problem: &'static str,
    },
}

impl MalformedPayment {
    /// The source that could not be read: the name of a header, or of a field of a message. `None` if that is not one
    /// place.
    pub(crate) const fn place(&self) -> Option<&'static str> {
        match self {
            Self::Several { .. } => None,
            Self::TooLong { what, .. }
            | Self::Encoding { what, .. }
            | Self::NotAnObject { what }
            | Self::Field { what, .. } => Some(*what),
        }
    }
}
