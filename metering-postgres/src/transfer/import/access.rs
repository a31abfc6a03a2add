//! Imports the challenges, signups, used solutions and links that may lead to a key.

use metering_core::payments::Challenge;
use metering_core::signups::{EmailLink, SignupSession};
use metering_core::transfer::{Record, SolutionRecord};

use super::books::{column, of_kind};
use crate::error::Result;
use crate::rows::execute;
use crate::transactions::serialized::SerializedWrite;

const CHALLENGES: &str = "INSERT INTO challenge (nonce, address, org_id, message, expires_at, failures) \
     SELECT * FROM unnest($1::TEXT[], $2::BYTEA[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[])";

const SIGNUPS: &str = "INSERT INTO signup \
     (token, user_code, email, agent_name, created_at, expires_at, approved_at) \
     SELECT * FROM unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])";

const EMAIL_LINKS: &str = "INSERT INTO email_link (token, account, purpose, expires_at) \
     SELECT new.token, a.id, new.purpose, new.expires_at \
     FROM unnest($1::BYTEA[], $2::TEXT[], $3::TEXT[], $4::BIGINT[]) AS new (token, org_id, purpose, expires_at) \
     JOIN account a ON a.org_id = new.org_id";

const SOLUTIONS: &str =
    "INSERT INTO used_solution (solution, expires_at) SELECT * FROM unnest($1::BYTEA[], $2::BIGINT[])";

pub(super) async fn challenges(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&Challenge> = of_kind!(records, Challenge);
    execute(
        write.client(),
        CHALLENGES,
        &[
            &column!(records, challenge => challenge.nonce.as_str()),
            &column!(records, challenge => challenge.address.as_bytes().as_slice()),
            &column!(records, challenge => challenge.account.as_str()),
            &column!(records, challenge => challenge.message.as_str()),
            &column!(records, challenge => challenge.expires_at.unix_millis()),
            &column!(records, challenge => i64::from(challenge.failures)),
        ],
    )
    .await
}

pub(super) async fn signups(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&SignupSession> = of_kind!(records, Signup);
    execute(
        write.client(),
        SIGNUPS,
        &[
            &column!(records, session => session.token.as_bytes().as_slice()),
            &column!(records, session => session.user_code.to_string()),
            &column!(records, session => session.email.as_str()),
            &column!(records, session => session.agent_name.as_str()),
            &column!(records, session => session.created_at.unix_millis()),
            &column!(records, session => session.expires_at.unix_millis()),
            &column!(records, session => session.approved_at.map(|at| at.unix_millis())),
        ],
    )
    .await
}

pub(super) async fn solutions(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&SolutionRecord> = of_kind!(records, Solution);
    let solutions = column!(records, record => record.solution.as_slice());
    execute(write.client(), SOLUTIONS, &[&solutions, &column!(records, record => record.expires_at.unix_millis())])
        .await
}

pub(super) async fn email_links(write: &SerializedWrite<'_>, records: &[Record]) -> Result<u64> {
    let records: Vec<&EmailLink> = of_kind!(records, EmailLink);
    execute(
        write.client(),
        EMAIL_LINKS,
        &[
            &column!(records, link => link.token.as_bytes().as_slice()),
            &column!(records, link => link.account.as_str()),
            &column!(records, link => link.purpose.as_str()),
            &column!(records, link => link.expires_at.unix_millis()),
        ],
    )
    .await
}
