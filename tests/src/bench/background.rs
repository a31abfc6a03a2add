//! A runtime for servers that run inside the benchmark.

use std::io;

use tokio::runtime::{Builder, Runtime};

/// A runtime with as many threads as the machine has cores, like the real server's. Asynchronous callers may drop it,
/// because it does not wait for its tasks. `None` only while being dropped.
#[derive(Debug)]
pub(super) struct Background(Option<Runtime>);

impl Background {
    pub(super) fn start() -> io::Result<Self> {
        Ok(Self(Some(Builder::new_multi_thread().enable_all().build()?)))
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(task);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
