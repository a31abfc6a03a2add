//! The settings under which statements run.

use crate::connection::wait::STATEMENT_TIMEOUT;

/// The settings for all statements. A node that loses its connection in the middle of a transaction must not hold locks
/// for long, and no statement may wait forever. Plans are generic, since the plan of a statement over arrays does not
/// depend on their contents, and planning it for each batch costs more than running it. `synchronous_commit` is only
/// ever switched on: an acknowledged charge is on disk, regardless of the database's default.
pub(crate) fn settings(is_local: bool) -> String {
    let set = if is_local { "SET LOCAL" } else { "SET" };
    format!(
        "{set} idle_in_transaction_session_timeout = '10s'; {set} lock_timeout = '10s'; \
         {set} statement_timeout = '{}s'; {set} plan_cache_mode = force_generic_plan; \
         SELECT set_config('synchronous_commit', 'on', {is_local}) WHERE current_setting('synchronous_commit') = 'off'",
        STATEMENT_TIMEOUT.as_secs()
    )
}

/// The settings for one transaction, for connections that keep none.
pub(crate) fn transaction_settings() -> String {
    settings(true)
}
