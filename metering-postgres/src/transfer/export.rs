mod activity;
mod sections;

use async_trait::async_trait;
use metering_core::StoreError;
use metering_core::backend::{one_more_than, page};
use metering_core::store::{Cursor, Page};
use metering_core::transfer::{Export, Part, Position, Record, Section};
use metering_sql::offers::parts;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::charging::known::SharedKnown;
use crate::connection::session::GenericClient;
use crate::connection::value::Value;
use crate::error::Result;
use crate::rows::all;
use crate::script::Statements;
use crate::store::PostgresStore;
use crate::usage::daily_totals;
use sections::Source;

#[async_trait]
impl Export for PostgresStore {
    async fn export(&self, section: Section, after: Option<&Cursor>, limit: u32) -> Result<Page<Record>, StoreError> {
        self.read_at_once(|transaction| {
            let (after, known) = (after.cloned(), SharedKnown::clone(&self.known));
            Box::pin(async move {
                match section {
                    Section::Usage => {
                        let Page { items, next } =
                            daily_totals::list(transaction, &known, after.as_ref(), limit).await?;
                        Ok(Page { items: items.into_iter().map(Record::Usage).collect(), next })
                    }
                    Section::Activity => activity::records(transaction, &known, after.as_ref(), limit).await,
                    _ => records(transaction, &Source::of(section), after.as_ref(), limit).await,
                }
            })
        })
        .await
    }
}

async fn records<C: GenericClient>(
    client: &C,
    source: &Source,
    after: Option<&Cursor>,
    limit: u32,
) -> Result<Page<Record>> {
    let position = after.map(|cursor| Position::of(cursor, source.keys.len())).transpose()?;
    let sql = source.sql(position.is_some());
    let mut values: Vec<Box<dyn Value>> = vec![Box::new(one_more_than(limit))];
    for part in position.into_iter().flat_map(|position| position.0) {
        values.push(match part {
            Part::Number(number) => Box::new(number),
            Part::Text(text) => Box::new(text),
            Part::Bytes(bytes) => Box::new(bytes),
        });
    }
    let values: Vec<&dyn Value> = values.iter().map(|value| &**value).collect();
    let rows = all(client, &sql, &values).await?;
    let read = |row: &Row| Ok((position_of(row, source.keys.len())?, (source.read)(row)?));
    let (positions, records): (Vec<_>, Vec<_>) = rows.iter().map(read).collect::<Result<Vec<_>>>()?.into_iter().unzip();
    let records = parts::complete(&mut Statements(client), records).await?;
    Ok(page(positions.into_iter().zip(records).collect(), limit, Position::cursor))
}

/// Reads the sort keys, which are the last columns.
fn position_of(row: &Row, keys: usize) -> Result<Position> {
    let part = |index: usize| {
        Ok(match *row.columns()[index].type_() {
            Type::INT8 => Part::Number(row.try_get(index)?),
            Type::BYTEA => Part::Bytes(row.try_get(index)?),
            _ => Part::Text(row.try_get(index)?),
        })
    };
    (row.len() - keys..row.len()).map(part).collect::<Result<_>>().map(Position)
}
