//! Migration to version 4: adds to every usage line the digest of its texts.

use crate::connection::session::GenericClient;
use crate::connection::wait::{REPORT_TIMEOUT, within};
use crate::error::Result;
use crate::rows::one;

/// Lines per statement, which must finish within the statement timeout of one minute.
const LINES: i64 = 50_000;

const SLICE: &str = "WITH slice AS (SELECT id FROM usage_line WHERE id > $1 ORDER BY id LIMIT $2), \
     done AS (UPDATE usage_line l SET digest = sha256( \
         int8send(octet_length(l.route_template)::BIGINT) || convert_to(l.route_template, 'UTF8') || \
         int8send(octet_length(l.http_method)::BIGINT) || convert_to(l.http_method, 'UTF8') || \
         int8send(octet_length(l.source)::BIGINT) || convert_to(l.source, 'UTF8')) \
       FROM slice WHERE l.id = slice.id RETURNING l.id) \
     SELECT max(id) FROM done";

const INDEX: &str = "ALTER TABLE usage_line ALTER COLUMN digest SET NOT NULL; \
     CREATE UNIQUE INDEX usage_line_digest ON usage_line (digest)";

/// Fills the column and creates its index.
pub(super) async fn digest_lines<C: GenericClient>(client: &C) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let row = within(REPORT_TIMEOUT, one(client, SLICE, &[&after, &LINES])).await?;
        match row.try_get::<_, Option<i64>>(0)? {
            Some(last) => after = last,
            None => break,
        }
    }
    within(REPORT_TIMEOUT, async { Ok(client.batch_execute(INDEX).await?) }).await
}
