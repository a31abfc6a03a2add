//! The condition of a query whose parts are optional.

use metering_core::AccountId;
use metering_core::operators::Period;

use crate::value::{ToValue, Value};

/// A condition and the parameters of its query.
#[derive(Debug)]
pub(crate) struct Conditions {
    sql: String,
    values: Vec<Value>,
}

impl Conditions {
    /// The part that is always there, and its parameters.
    pub(crate) fn new(sql: &str, values: Vec<Value>) -> Self {
        Self { sql: sql.to_owned(), values }
    }

    /// The condition.
    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    /// The parameters.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Adds a part without a parameter.
    pub(crate) fn and(&mut self, part: &str) {
        self.sql.push_str(" AND ");
        self.sql.push_str(part);
    }

    /// A column has this value, if there is one.
    pub(crate) fn equals(&mut self, column: &str, value: Option<&impl ToValue>) {
        if let Some(value) = value {
            self.compare(column, "=", value.to_value());
        }
    }

    /// A column has the number of this account, if there is one.
    pub(crate) fn of_account(&mut self, column: &str, account: Option<&AccountId>) {
        if let Some(account) = account {
            self.values.push(account.to_value());
            self.and(&format!("{column} = (SELECT a.id FROM account a WHERE a.org_id = ?{})", self.values.len()));
        }
    }

    /// A column has one of these values.
    pub(crate) fn one_of(&mut self, column: &str, numbers: &[i64]) {
        self.values.push(numbers.to_value());
        self.and(&format!("{column} {{in ?{}}}", self.values.len()));
    }

    /// A column has a time in this period.
    pub(crate) fn within(&mut self, column: &str, period: Period) {
        if let Some(from) = period.from {
            self.compare(column, ">=", from.to_value());
        }
        if let Some(until) = period.until {
            self.compare(column, "<", until.to_value());
        }
    }

    fn compare(&mut self, column: &str, operator: &str, value: Value) {
        self.values.push(value);
        self.and(&format!("{column} {operator} ?{}", self.values.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values;

    #[test]
    fn only_what_is_asked_for_is_a_part() {
        let mut conditions = Conditions::new("id < ?1", values![7_i64, 10_i64]);
        conditions.equals("subject", None::<&String>);
        conditions.within("at", Period::default());
        assert_eq!((conditions.sql(), conditions.values().len()), ("id < ?1", 2));
        conditions.equals("subject", Some(&"org".to_owned()));
        let from = Some(metering_core::Timestamp::from_unix_millis(5));
        conditions.within("at", Period { from, until: from });
        assert_eq!(conditions.sql(), "id < ?1 AND subject = ?3 AND at >= ?4 AND at < ?5");
        assert_eq!(conditions.values().len(), 5);
        conditions.one_of("id", &[7]);
        assert!(conditions.sql().ends_with(" AND id {in ?6}"));
        conditions.of_account("account", None);
        assert_eq!(conditions.values().len(), 6);
        conditions.of_account("account", Some(&"org_x0000000000000000001".parse().unwrap()));
        assert!(conditions.sql().ends_with(" AND account = (SELECT a.id FROM account a WHERE a.org_id = ?7)"));
    }
}
