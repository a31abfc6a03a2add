//! Numbers of schemas that are created many at a time: a call of `psql` takes as long as a short test.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// How many schemas are created at once.
const BATCH: u32 = 64;

/// Hands out numbers, each once, from 0.
#[derive(Debug)]
pub(crate) struct Batches(Mutex<Range<u32>>);

impl Batches {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(0..0))
    }

    /// The next number. Before the first of each batch, `sql` is called for each of its numbers, and `run` with all it
    /// returned.
    pub(crate) fn next(&self, sql: impl Fn(u32) -> String, run: impl FnOnce(&str)) -> u32 {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            let batch = left.end..left.end + BATCH;
            run(&batch.clone().map(sql).collect::<String>());
            *left = batch;
        }
        left.next().expect("the batch is new")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn each_batch_is_created_before_its_first_number() {
        let (batches, runs) = (Batches::new(), RefCell::new(Vec::new()));
        for expected in 0..=BATCH {
            let number = batches.next(|number| format!("{number};"), |sql| runs.borrow_mut().push(sql.to_owned()));
            assert_eq!(number, expected);
            assert_eq!(runs.borrow().len(), if number < BATCH { 1 } else { 2 });
        }
        assert!(runs.borrow()[0].starts_with("0;1;") && runs.borrow()[0].ends_with("62;63;"));
        assert!(runs.borrow()[1].starts_with("64;65;"));
    }
}
