//! Reversals of payments that processors took.

use metering_core::Timestamp;
use metering_core::chains::TxHash;
use metering_core::payments::{ProcessorRef, ProcessorReversal};

use crate::executor::Executor;
use crate::fault::Result;
use crate::record::{self, Record, table};
use crate::row::Reader;
use crate::table::Table;
use crate::value::Value;
use crate::values;

impl Record for ProcessorReversal {
    const TABLE: Table = table!("payment_reversal" by ["processor", "reversal_id"] {
        Own(processor), Own(reversal_id), Own(tx_hash), Own(amount), Own(reason), Own(reversed_at), Own(restored_at),
        Own(interruptions)
    });

    fn values(&self) -> Result<Vec<Value>> {
        let Self { reference, payment, amount, reason, reversed_at, restored_at, interruptions } = self;
        let mut values = values![reference.processor(), reference.id(), payment, amount, reason];
        values.extend(values![reversed_at, restored_at, written(interruptions)]);
        Ok(values)
    }

    fn read(row: &mut Reader<'_>) -> Result<Self> {
        let (processor, id): (String, String) = (row.next()?, row.next()?);
        let reference = ProcessorRef::new(&processor, &id).map_err(|wrong| row.corrupt(wrong))?;
        let (payment, amount, reason) = (row.next()?, row.next()?, row.next()?);
        let (reversed_at, restored_at, interruptions): (_, _, Option<String>) = (row.next()?, row.next()?, row.next()?);
        let interruptions = interruptions.map_or(Some(Vec::new()), |text| read(&text));
        let interruptions =
            interruptions.ok_or_else(|| row.corrupt("not times at which a reversal was interrupted"))?;
        Ok(Self { reference, payment, amount, reason, reversed_at, restored_at, interruptions })
    }
}

/// Interruptions, as their column has them.
pub(crate) fn written(interruptions: &[(Timestamp, Timestamp)]) -> Option<String> {
    let times = interruptions.iter().map(|(ended, again)| format!("{}:{}", ended.unix_millis(), again.unix_millis()));
    let times: Vec<_> = times.collect();
    (!times.is_empty()).then(|| times.join(","))
}

fn read(text: &str) -> Option<Vec<(Timestamp, Timestamp)>> {
    let time = |text: &str| text.parse::<i64>().ok().map(Timestamp::from_unix_millis);
    let times = |text: &str| {
        let (ended, again) = text.split_once(':')?;
        time(ended).zip(time(again))
    };
    text.split(',').map(times).collect()
}

/// The reversals of the payment with this hash, by time, then id.
pub async fn of_payment(db: &mut dyn Executor, payment: &TxHash) -> Result<Vec<ProcessorReversal>> {
    let rest = "WHERE tx_hash = ?1 ORDER BY reversed_at, reversal_id {bytes}";
    record::list(db, rest, &values![payment]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interruptions_are_read_as_they_were_written() {
        let at = Timestamp::from_unix_millis;
        assert_eq!(written(&[]), None);
        for times in [vec![(at(1), at(2))], vec![(at(-1), at(0)), (at(5), at(1_795_262_400_000))]] {
            assert_eq!(read(&written(&times).unwrap()), Some(times));
        }
        for wrong in ["", "1", "1:", "1:2,", "1:2:3", "1.5:2", "a:b"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
