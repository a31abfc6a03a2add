//! The values of a configuration by their keys, such as `http.body_timeout`.

use std::collections::BTreeMap;

use toml::{Table, Value};

/// The values of a table by their keys, with those of the tables in it.
pub(super) fn flatten(prefix: &str, table: Table, values: &mut BTreeMap<String, Value>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::Table(table) => flatten(&key, table, values),
            value => drop(values.insert(key, value)),
        }
    }
}
