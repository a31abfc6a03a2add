//! Boxed futures, so that executors and backends are trait objects.

use std::pin::Pin;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Boxes a script, so that it is compiled once, with this crate's own store. A generic function that is never inlined is shared
/// by all crates; elsewhere, each backend would compile each script again.
#[inline(never)]
pub fn shared<'a, F>(script: F) -> BoxFuture<'a, F::Output>
where
    F: Future + Send + 'a,
{
    Box::pin(script)
}
