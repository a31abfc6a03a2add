//! Imports the challenges, signups, used solutions and links that may lead to a key.

use metering_core::payments::Challenge;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::transfer::{Record, SolutionRecord};

use super::books::{column, of_kind};
use super::sales::insert;
use crate::error::Result;
use crate::rows::execute;
use crate::transactions::serialized::SerializedWrite;

const SOLUTIONS: &str =
    "INSERT INTO used_solution (solution, expires_at) SELECT * FROM unnest($1::BYTEA[], $2::BIGINT[])";

pub(super) async fn challenges(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<Challenge> = of_kind!(records, Challenge).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn signups(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<SignupSession> = of_kind!(records, Signup).into_iter().cloned().collect();
    insert(write, &records).await
}

pub(super) async fn solutions(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&SolutionRecord> = of_kind!(records, Solution);
    let solutions = column!(records, record => record.solution.as_slice());
    execute(write.client(), SOLUTIONS, &[&solutions, &column!(records, record => record.expires_at.unix_millis())])
        .await
}

pub(super) async fn email_links(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<EmailLink> = of_kind!(records, EmailLink).into_iter().cloned().collect();
    insert(write, &records).await
}
