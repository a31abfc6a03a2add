//! Plans for chains that the server's configuration does not have: they are saved, but cannot be bought yet.

use std::collections::BTreeSet;

use metering_core::payments::Plan;

use crate::admin::payments::chains;
use crate::admin::session::Session;
use crate::output::notice;

/// Warns about plans that cannot be bought yet. Prints nothing if the chains are unknown: for a server, or without its
/// configuration.
pub(super) fn warn(session: &Session, plans: &[Plan]) {
    if session.server().is_some() {
        return;
    }
    let Ok(configured) = chains::configured_ids(session.sources()) else { return };
    let missing: BTreeSet<u64> =
        plans.iter().map(|plan| plan.chain_id).filter(|chain| !configured.contains(chain)).collect();
    for chain in missing {
        let count = plans.iter().filter(|plan| plan.chain_id == chain).count();
        notice(&format!(
            "note: {} has no chain with chain_id = {chain}; until it has one, nobody can buy {count} of the plans",
            chains::config_location(session.sources())
        ));
    }
}
