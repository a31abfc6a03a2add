//! A table's columns, declared once: the statements that name all of them follow from the declaration.

use std::fmt::Write;

/// A table, and the columns that its records have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The columns that identify a row.
    pub key: &'static [&'static str],
    /// All columns, in the order in which a record reads and writes them.
    pub columns: &'static [Column],
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Stored unchanged.
    Own(&'static str),
    /// The row number of an account; a record has the account's public id.
    Account(&'static str),
    /// Like [`Column::Account`], or `{no_account}` if there is none.
    Owner(&'static str),
    /// The row number of a webhook; a record has the webhook's public id.
    Webhook(&'static str),
    /// A place among the transactions of a wallet, as `{place}` makes it of its number.
    Place(&'static str),
}

impl Column {
    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Own(name) | Self::Account(name) | Self::Owner(name) | Self::Webhook(name) | Self::Place(name) => name,
        }
    }
}

impl Table {
    /// `SELECT` of all columns, without a condition. The table's own columns can be named without it.
    #[must_use]
    pub fn select(&self) -> String {
        format!("SELECT {} FROM {}", self.column_list(), self.name)
    }

    /// What follows `SELECT` for all columns.
    #[must_use]
    pub fn column_list(&self) -> String {
        let column = |column: &Column| match column {
            Column::Own(name) | Column::Place(name) => format!("{}.{name}", self.name),
            Column::Account(name) | Column::Owner(name) => {
                format!("(SELECT o.org_id FROM account o WHERE o.id = {}.{name})", self.name)
            }
            Column::Webhook(name) => {
                format!("(SELECT h.public_id FROM webhook h WHERE h.id = {}.{name})", self.name)
            }
        };
        self.columns.iter().map(column).collect::<Vec<_>>().join(", ")
    }

    /// `INSERT` of one row.
    #[must_use]
    pub fn insert(&self) -> String {
        self.insertion(None)
    }

    /// `INSERT` of one row with one more column. Its value is an expression, which may have the parameter after those of
    /// the columns.
    #[must_use]
    pub fn insert_with(&self, column: &str, value: &str) -> String {
        self.insertion(Some((column, value)))
    }

    /// Like [`Table::insert`], with the row's number `id` as the last parameter.
    #[must_use]
    pub fn insert_numbered(&self) -> String {
        self.insert_with("id", &format!("?{}", self.columns.len() + 1))
    }

    fn insertion(&self, more: Option<(&str, &str)>) -> String {
        let mut names: Vec<&str> = self.columns.iter().map(Column::name).collect();
        let value = |(index, column): (usize, &Column)| {
            let number = index + 1;
            let account = format!("(SELECT o.id FROM account o WHERE o.org_id = ?{number})");
            match column {
                Column::Own(_) => format!("?{number}"),
                Column::Account(_) => account,
                // An unknown account is not taken for none: the column does not take the NULL.
                // PostgreSQL needs the cast: the parameter has no type there otherwise.
                Column::Owner(_) => {
                    format!("CASE WHEN CAST(?{number} AS TEXT) IS NULL THEN {{no_account}} ELSE {account} END")
                }
                Column::Webhook(_) => format!("(SELECT h.id FROM webhook h WHERE h.public_id = ?{number})"),
                Column::Place(_) => format!("{{place}}(?{number})"),
            }
        };
        let mut values: Vec<String> = self.columns.iter().enumerate().map(value).collect();
        if let Some((column, value)) = more {
            names.push(column);
            values.push(value.to_owned());
        }
        format!("INSERT INTO {} ({}) VALUES ({})", self.name, names.join(", "), values.join(", "))
    }

    /// `UPDATE` of these columns of the row with a key. The parameters are the key's columns, and then these; accounts are
    /// given by their row numbers.
    #[must_use]
    pub fn update(&self, columns: &[&str]) -> String {
        let is_place =
            |name: &str| self.columns.iter().any(|column| matches!(column, Column::Place(place) if *place == name));
        let equal = |(index, name): (usize, &&str)| match index + 1 {
            number if is_place(name) => format!("{name} = {{place}}(?{number})"),
            number => format!("{name} = ?{number}"),
        };
        let sets: Vec<String> = self.key.iter().chain(columns).enumerate().map(equal).collect();
        let (key, sets) = sets.split_at(self.key.len());
        format!("UPDATE {} SET {} WHERE {}", self.name, sets.join(", "), key.join(" AND "))
    }

    /// `INSERT` of one row, which replaces the one with the same key.
    #[must_use]
    pub fn put(&self) -> String {
        let mut sql = self.insert();
        let others = self.columns.iter().map(Column::name).filter(|name| !self.key.contains(name));
        let sets: Vec<String> = others.map(|name| format!("{name} = excluded.{name}")).collect();
        let _ = write!(sql, " ON CONFLICT ({}) DO UPDATE SET {}", self.key.join(", "), sets.join(", "));
        sql
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Table = Table {
        name: "link",
        key: &["token"],
        columns: &[Column::Own("token"), Column::Account("account"), Column::Own("until")],
    };

    #[test]
    fn a_row_may_have_another_column_and_refer_to_others() {
        let table = Table {
            name: "note",
            key: &["id"],
            columns: &[Column::Own("id"), Column::Owner("account"), Column::Webhook("hook")],
        };
        assert_eq!(
            table.select(),
            "SELECT note.id, (SELECT o.org_id FROM account o WHERE o.id = note.account), \
             (SELECT h.public_id FROM webhook h WHERE h.id = note.hook) FROM note"
        );
        assert_eq!(
            table.insert_with("place", "?4"),
            "INSERT INTO note (id, account, hook, place) VALUES (?1, CASE WHEN CAST(?2 AS TEXT) IS NULL THEN {no_account} \
             ELSE (SELECT o.id FROM account o WHERE o.org_id = ?2) END, \
             (SELECT h.id FROM webhook h WHERE h.public_id = ?3), ?4)"
        );
    }

    #[test]
    fn a_place_is_written_as_its_table_has_it() {
        let columns = &[Column::Own("wallet"), Column::Place("next")];
        let table = Table { name: "gas", key: &["wallet"], columns };
        assert_eq!(table.select(), "SELECT gas.wallet, gas.next FROM gas");
        assert_eq!(table.insert(), "INSERT INTO gas (wallet, next) VALUES (?1, {place}(?2))");
        assert_eq!(table.update(&["next"]), "UPDATE gas SET next = {place}(?2) WHERE wallet = ?1");
    }

    #[test]
    fn statements_follow_from_the_columns() {
        assert_eq!(
            LINK.select(),
            "SELECT link.token, (SELECT o.org_id FROM account o WHERE o.id = link.account), link.until FROM link"
        );
        assert_eq!(
            LINK.put(),
            "INSERT INTO link (token, account, until) \
             VALUES (?1, (SELECT o.id FROM account o WHERE o.org_id = ?2), ?3) \
             ON CONFLICT (token) DO UPDATE SET account = excluded.account, until = excluded.until"
        );
        assert_eq!(LINK.update(&["account", "until"]), "UPDATE link SET account = ?2, until = ?3 WHERE token = ?1");
        assert_eq!(
            LINK.insert_numbered(),
            "INSERT INTO link (token, account, until, id) \
             VALUES (?1, (SELECT o.id FROM account o WHERE o.org_id = ?2), ?3, ?4)"
        );
    }
}
