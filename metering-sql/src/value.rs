//! Parameters and columns, and the plain types that are stored as them.

use std::fmt;

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

/// Types that can be a parameter of a statement.
pub trait ToValue {
    /// NULL, of the type of the column.
    const NULL: Value;

    /// The stored form of the value.
    fn to_value(&self) -> Value;
}

/// Types that can be read from a column.
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

/// The parameters of a statement: `values![id, at]`.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        ::std::vec::Vec::from([$($crate::ToValue::to_value(&$value)),*])
    };
}
