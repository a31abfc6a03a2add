//! Parameters and columns, and the domain types that are stored as them.

mod proofs;

use std::fmt;

use metering_core::access::{
    AgentName, BrowserSessionId, BrowserTokenHash, BudgetReset, DeviceName, Email, HashKind, Identity, KeyHash,
    KeyHint, KeyId, KeyName, KeyNumber, MemberId, MemberRole, Networks, RoutePatterns, Scopes,
};
use metering_core::chains::{Address, TokenUnits, TxHash};
use metering_core::charging::{Fingerprint, HeldTokens, HoldId, SettleReason};
use metering_core::clock::Month;
use metering_core::events::{DeliveryId, DeliveryState, EventKind, EventKinds, WebhookId, WebhookState};
use metering_core::money::{Currency, LedgerKind};
use metering_core::oauth::{CodeChallenge, GrantId, GrantTokenHash, RedirectUri};
use metering_core::offers::{AuthorizationNonce, IdentifierHash, SettlementFailure};
use metering_core::operators::{Actor, AuditId, AuditResult, OperatorName, OperatorTokenHash, Role};
use metering_core::payments::{
    CurrencyAmount, ExchangeRate, NonceHash, PaymentUse, TopUpChargeId, TopUpChargeState, TopUpStop,
};
use metering_core::prices::{CatalogueHash, PriceNumber};
use metering_core::signups::{LinkHash, LinkPurpose, SessionHash, UserCode};
use metering_core::store::SourceId;
use metering_core::{AccountId, Credits, Day, RequestId, Timestamp};

/// A parameter or a column: `None` is NULL. It has a type even then, because PostgreSQL wants to know it.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// A 64-bit integer.
    Integer(Option<i64>),
    /// A text.
    Text(Option<String>),
    /// Bytes.
    Bytes(Option<Vec<u8>>),
    /// A list of integers, only as a parameter: for the word `{in ?1}`.
    Integers(Vec<i64>),
    /// A list of bytes, only as a parameter: for the word `{in_bytes ?1}`.
    ManyBytes(Vec<Vec<u8>>),
    /// A truth value. SQLite stores it as 0 or 1.
    Boolean(Option<bool>),
}

impl Value {
    /// Whether it is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Integer(None) | Self::Text(None) | Self::Bytes(None) | Self::Boolean(None))
    }
}

impl fmt::Debug for Value {
    /// Only the type: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer(_) => "Integer(..)",
            Self::Text(_) => "Text(..)",
            Self::Bytes(_) => "Bytes(..)",
            Self::Integers(_) => "Integers(..)",
            Self::ManyBytes(_) => "ManyBytes(..)",
            Self::Boolean(_) => "Boolean(..)",
        })
    }
}

/// What can be a parameter of a statement.
pub trait ToValue {
    /// NULL, of the type of the column.
    const NULL: Value;

    /// The value as it is stored.
    fn to_value(&self) -> Value;
}

/// What can be read from a column.
pub trait FromValue: Sized {
    /// `None` when the column does not hold such a value.
    fn from_value(value: &Value) -> Option<Self>;
}

impl<T: ToValue + ?Sized> ToValue for &T {
    const NULL: Value = T::NULL;

    fn to_value(&self) -> Value {
        (**self).to_value()
    }
}

impl<T: ToValue> ToValue for Option<T> {
    const NULL: Value = T::NULL;

    fn to_value(&self) -> Value {
        self.as_ref().map_or(T::NULL, T::to_value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: &Value) -> Option<Self> {
        if value.is_null() { Some(None) } else { T::from_value(value).map(Some) }
    }
}

macro_rules! integers {
    ($($number:ty),*) => {
        $(impl ToValue for $number {
            const NULL: Value = Value::Integer(None);

            fn to_value(&self) -> Value {
                Value::Integer(Some(i64::from(*self)))
            }
        }

        impl FromValue for $number {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Integer(Some(number)) => Self::try_from(*number).ok(),
                    _ => None,
                }
            }
        })*
    };
}

integers!(i64, i32, u32, u16, u8);

/// The database's integers are signed: the upper half of the range is stored as negative numbers.
impl ToValue for u64 {
    const NULL: Value = Value::Integer(None);

    fn to_value(&self) -> Value {
        Value::Integer(Some(self.cast_signed()))
    }
}

impl FromValue for u64 {
    fn from_value(value: &Value) -> Option<Self> {
        i64::from_value(value).map(i64::cast_unsigned)
    }
}

impl ToValue for bool {
    const NULL: Value = Value::Boolean(None);

    fn to_value(&self) -> Value {
        Value::Boolean(Some(*self))
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Boolean(truth) => *truth,
            Value::Integer(Some(0)) => Some(false),
            Value::Integer(Some(1)) => Some(true),
            _ => None,
        }
    }
}

impl ToValue for str {
    const NULL: Value = Value::Text(None);

    fn to_value(&self) -> Value {
        Value::Text(Some(self.to_owned()))
    }
}

impl ToValue for String {
    const NULL: Value = Value::Text(None);

    fn to_value(&self) -> Value {
        self.as_str().to_value()
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(text) => text.clone(),
            _ => None,
        }
    }
}

impl ToValue for [u8] {
    const NULL: Value = Value::Bytes(None);

    fn to_value(&self) -> Value {
        Value::Bytes(Some(self.to_vec()))
    }
}

impl ToValue for [i64] {
    const NULL: Value = Value::Integers(Vec::new());

    fn to_value(&self) -> Value {
        Value::Integers(self.to_vec())
    }
}

impl ToValue for Vec<i64> {
    const NULL: Value = Value::Integers(Vec::new());

    fn to_value(&self) -> Value {
        Value::Integers(self.clone())
    }
}

impl<const N: usize> ToValue for [u8; N] {
    const NULL: Value = Value::Bytes(None);

    fn to_value(&self) -> Value {
        self.as_slice().to_value()
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => bytes.clone(),
            _ => None,
        }
    }
}

impl<const N: usize> FromValue for [u8; N] {
    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(Some(bytes)) => bytes.as_slice().try_into().ok(),
            _ => None,
        }
    }
}

/// Domain types that wrap what is stored: the type, how to make it, and how to get at what it wraps.
macro_rules! wrappers {
    ($($wrapper:ty: $stored:ty, $from:expr, $to:expr;)*) => {
        $(impl ToValue for $wrapper {
            const NULL: Value = <$stored as ToValue>::NULL;

            fn to_value(&self) -> Value {
                let to: fn(&Self) -> $stored = $to;
                to(self).to_value()
            }
        }

        impl FromValue for $wrapper {
            fn from_value(value: &Value) -> Option<Self> {
                <$stored>::from_value(value).map($from)
            }
        })*
    };
}

wrappers! {
    Timestamp: i64, Self::from_unix_millis, |time| time.unix_millis();
    KeyNumber: u32, Self::new, |number| number.get();
    Day: i64, Self::from_unix_days, |day| day.unix_days();
    Month: i64, Self::from_unix_months, |month| month.unix_months();
    Credits: i64, Self::from_atoms, |credits| credits.atoms();
    Address: [u8; 20], Self::from_bytes, |address| *address.as_bytes();
    TxHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    TokenUnits: [u8; 16], |bytes| Self::new(u128::from_be_bytes(bytes)), |units| units.get().to_be_bytes();
    BrowserSessionId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    BrowserTokenHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    KeyHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    GrantId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    GrantTokenHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    AuthorizationNonce: [u8; 32], Self::from_bytes, |nonce| *nonce.as_bytes();
    IdentifierHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    NonceHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    Fingerprint: [u8; 16], Self::from_bytes, |fingerprint| *fingerprint.as_bytes();
    HoldId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    TopUpChargeId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    LinkHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    MemberId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    SessionHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    DeliveryId: i64, Self::new, |id| id.get();
    WebhookId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    SourceId: [u8; 16], Self::from_bytes, |id| *id.as_bytes();
    OperatorTokenHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    CatalogueHash: [u8; 32], Self::from_bytes, |hash| *hash.as_bytes();
    AuditId: i64, Self, |id| id.0;
    PriceNumber: u32, Self, |number| number.0;
}

/// Domain types that are stored as their text.
macro_rules! texts {
    ($($domain:ty),*) => {
        $(impl ToValue for $domain {
            const NULL: Value = Value::Text(None);

            fn to_value(&self) -> Value {
                Value::Text(Some(self.to_string()))
            }
        }

        impl FromValue for $domain {
            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Text(Some(text)) => text.parse().ok(),
                    _ => None,
                }
            }
        })*
    };
}

texts!(
    AccountId,
    Actor,
    AgentName,
    BudgetReset,
    CodeChallenge,
    Currency,
    CurrencyAmount,
    DeviceName,
    Email,
    EventKinds,
    ExchangeRate,
    HashKind,
    HeldTokens,
    Identity,
    KeyHint,
    KeyId,
    KeyName,
    Networks,
    OperatorName,
    RedirectUri,
    RoutePatterns,
    Scopes,
    UserCode
);

/// Domain types that are stored as their name: the type, and how to find it by its name.
macro_rules! names {
    ($($domain:ty: $from:expr;)*) => {
        $(impl ToValue for $domain {
            const NULL: Value = Value::Text(None);

            fn to_value(&self) -> Value {
                self.as_str().to_value()
            }
        }

        impl FromValue for $domain {
            fn from_value(value: &Value) -> Option<Self> {
                let from: fn(&str) -> Option<Self> = $from;
                from(&String::from_value(value)?)
            }
        })*
    };
}

names! {
    AuditResult: Self::from_name;
    DeliveryState: Self::from_name;
    EventKind: Self::from_name;
    LedgerKind: Self::from_name;
    LinkPurpose: |name| name.parse().ok();
    MemberRole: Self::from_name;
    PaymentUse: Self::from_name;
    RequestId: |id| Self::from_stored(id).ok();
    Role: |name| name.parse().ok();
    SettleReason: Self::from_name;
    SettlementFailure: Self::from_name;
    TopUpChargeState: Self::from_name;
    TopUpStop: Self::from_name;
    WebhookState: Self::from_name;
}

/// The parameters of a statement: `values![id, at]`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        ::std::vec::Vec::from([$($crate::ToValue::to_value(&$value)),*])
    };
}
