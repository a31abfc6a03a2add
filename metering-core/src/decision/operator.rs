//! Creates and revokes operators, and issues them new tokens.

use super::Decided;
use crate::clock::Timestamp;
use crate::operators::operator::{NewOperator, Operator, OperatorTokenHash};
use crate::store::StoreError;

/// The rows read before an operator is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorFacts {
    /// Whether an operator has the name, revoked or not.
    pub name_in_use: bool,
    /// Whether an operator has the token, revoked or not.
    pub token_in_use: bool,
}

/// Decides [`OperatorStore::create_operator`](crate::store::OperatorStore::create_operator): the operator to insert, or
/// `None` when the name is in use.
///
/// # Errors
/// When the token is in use. Tokens are random, so the caller made a mistake.
pub fn create_operator(new: NewOperator, facts: OperatorFacts) -> Result<Option<Operator>, StoreError> {
    if facts.name_in_use {
        return Ok(None);
    }
    if facts.token_in_use {
        return Err(StoreError::Corrupt("the token of a new operator is already in use".to_owned()));
    }
    Ok(Some(new.into()))
}

/// Decides [`OperatorStore::revoke_operator`](crate::store::OperatorStore::revoke_operator). The accepted change is the
/// operator after it.
///
/// An operator who does not exist, or is already revoked, is returned as found.
pub fn revoke_operator(operator: Option<Operator>, now: Timestamp) -> Decided<Operator, Option<Operator>> {
    match operator {
        Some(operator) if operator.revoked_at.is_none() => {
            Decided::Accepted(Operator { revoked_at: Some(now), ..operator })
        }
        found => Decided::Refused(found),
    }
}

/// Decides [`OperatorStore::rotate_operator_token`](crate::store::OperatorStore::rotate_operator_token): the operator
/// with the new token, or `None` when there is no such operator or it was revoked.
///
/// # Errors
/// When the token is in use. Tokens are random, so the caller made a mistake.
pub fn rotate_operator_token(
    operator: Option<Operator>,
    token: OperatorTokenHash,
    token_in_use: bool,
) -> Result<Option<Operator>, StoreError> {
    if token_in_use {
        return Err(StoreError::Corrupt("the new token of an operator is already in use".to_owned()));
    }
    Ok(operator.filter(|operator| operator.revoked_at.is_none()).map(|operator| Operator { token, ..operator }))
}

#[cfg(test)]
mod tests {
    use super::super::scene::NOW;
    use super::*;
    use crate::operators::operator::Role;

    fn new() -> NewOperator {
        let token = OperatorTokenHash::from_bytes([7; 32]);
        NewOperator { name: "jo".parse().unwrap(), role: Role::Manager, token, created_at: NOW }
    }

    #[test]
    fn a_name_in_use_is_no_error_but_a_token_in_use_is() {
        let decide = |name_in_use, token_in_use| create_operator(new(), OperatorFacts { name_in_use, token_in_use });
        assert_eq!(decide(false, false).unwrap(), Some(Operator::from(new())));
        assert_eq!(decide(true, false).unwrap(), None);
        assert_eq!(decide(true, true).unwrap(), None);
        assert!(matches!(decide(false, true), Err(StoreError::Corrupt(_))));
    }

    #[test]
    fn an_operator_is_revoked_once() {
        let later = NOW.saturating_add(std::time::Duration::from_secs(1));
        let live = Operator::from(new());
        let revoked = Operator { revoked_at: Some(NOW), ..live.clone() };
        assert_eq!(revoke_operator(None, NOW), Decided::Refused(None));
        assert_eq!(revoke_operator(Some(live), NOW), Decided::Accepted(revoked.clone()));
        assert_eq!(revoke_operator(Some(revoked.clone()), later), Decided::Refused(Some(revoked)));
    }

    #[test]
    fn only_an_operator_who_is_not_revoked_gets_a_new_token() {
        let token = OperatorTokenHash::from_bytes([8; 32]);
        let live = Operator::from(new());
        let revoked = Operator { revoked_at: Some(NOW), ..live.clone() };
        let rotated = Operator { token, ..live.clone() };
        assert_eq!(rotate_operator_token(Some(live.clone()), token, false).unwrap(), Some(rotated));
        assert_eq!(rotate_operator_token(Some(revoked), token, false).unwrap(), None);
        assert_eq!(rotate_operator_token(None, token, false).unwrap(), None);
        assert!(matches!(rotate_operator_token(Some(live), token, true), Err(StoreError::Corrupt(_))));
    }
}
