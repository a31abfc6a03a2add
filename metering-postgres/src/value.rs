//! The values of statements, each with its SQL type: a statement without a name has to say the types itself.

use tokio_postgres::types::{ToSql, Type};

/// A statement's values.
pub(crate) type Values<'v> = &'v [&'v dyn Value];

/// A value of one SQL type, which is the one that the server would infer.
pub(crate) trait Value: ToSql + Sync + Send {
    /// Its SQL type.
    fn sql_type(&self) -> Type;

    /// The value as the driver takes it.
    fn as_sql(&self) -> &(dyn ToSql + Sync);
}

macro_rules! values {
    ($($rust:ty => $sql:ident),* $(,)?) => {
        $(impl Value for $rust {
            fn sql_type(&self) -> Type {
                Type::$sql
            }

            fn as_sql(&self) -> &(dyn ToSql + Sync) {
                self
            }
        })*
    };
}

values! {
    bool => BOOL,
    i64 => INT8,
    Option<i64> => INT8,
    Vec<i64> => INT8_ARRAY,
    &[i64] => INT8_ARRAY,
    Vec<Option<i64>> => INT8_ARRAY,
    &str => TEXT,
    String => TEXT,
    Option<&str> => TEXT,
    Option<String> => TEXT,
    Vec<&str> => TEXT_ARRAY,
    Vec<String> => TEXT_ARRAY,
    Vec<Option<&str>> => TEXT_ARRAY,
    Vec<Option<String>> => TEXT_ARRAY,
    &[u8] => BYTEA,
    Vec<u8> => BYTEA,
    Option<&[u8]> => BYTEA,
    Vec<&[u8]> => BYTEA_ARRAY,
    Vec<Option<&[u8]>> => BYTEA_ARRAY,
    Vec<bool> => BOOL_ARRAY,
}
