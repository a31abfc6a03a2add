//! Parameters of statements, each with its SQL type: unnamed statements must state the types themselves.

use tokio_postgres::types::{ToSql, Type};

/// The parameters of a statement.
pub(crate) type Values<'v> = &'v [&'v dyn Value];

/// A parameter with an SQL type, which must be the one that the server would infer.
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
