use crate::store::SqliteStore;

metering_sql::payment_store!(SqliteStore);

#[cfg(test)]
mod tests {
    use metering_sql::quotes::TARGETS;
    use rusqlite::{Connection, StatementStatus};

    /// A database of quotes in one token, with two recipients on chain 1 and one on chain 2.
    fn filled(quotes: i64) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        crate::migrations::migrate(&mut connection).unwrap();
        let sql = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1) \
                   INSERT INTO quote (nonce, agent_name, payer, chain_id, token, recipient, amount, plan_id, credits, \
                   bonus_credits, created_at, expires_at, honoured_until, state) \
                   SELECT randomblob(32), 'a', randomblob(20), 1 + (n % 3 = 0), zeroblob(20), \
                   CASE WHEN n % 3 = 1 THEN zeroblob(20) ELSE x'0100000000000000000000000000000000000000' END, randomblob(16), 'p', 1, 0, 0, 0, \
                   0, 'open' FROM n";
        connection.execute(sql, [quotes]).unwrap();
        connection
    }

    /// The first bytes of the recipients of the targets of a chain, and how many steps it took to find them.
    fn recipients(connection: &Connection, chain_id: i64) -> (Vec<u8>, i32) {
        let mut statement = connection.prepare(TARGETS).unwrap();
        let recipients = statement.query_map([chain_id], |row| Ok(row.get::<_, [u8; 20]>(1)?[0])).unwrap();
        let recipients = recipients.map(Result::unwrap).collect();
        (recipients, statement.get_status(StatementStatus::VmStep))
    }

    #[test]
    fn each_payment_target_is_listed_once() {
        let connection = filled(300);
        assert_eq!(recipients(&connection, 1).0, [0, 1]);
        assert_eq!(recipients(&connection, 2).0, [1]);
        assert!(recipients(&connection, 3).0.is_empty());
    }

    #[test]
    fn target_search_does_not_scan_quotes() {
        let steps = |quotes: i64| recipients(&filled(quotes), 1).1;
        let (few, many) = (steps(30), steps(30_000));
        assert!(many <= few + 10, "{few} steps, but {many} with a thousand times as many quotes");
    }
}
