//! Ctrl-C and SIGTERM end the benchmark in order, so that its servers end and its data is deleted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::Failure;

/// The exit code of a program that Ctrl-C ended immediately.
const ENDED: i32 = 130;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on a signal only makes [`check`] fail; a second one ends the process immediately.
pub(super) fn watch() -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let entered = runtime.enter();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    drop(entered);
    thread::spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! { _ = interrupt.recv() => (), _ = terminate.recv() => () }
                if REQUESTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(ENDED);
                }
                eprintln!("ending; interrupt again to end immediately and leave servers and data behind");
            }
        });
    });
    Ok(())
}

/// Fails once the benchmark should end. Called before each measurement.
pub(super) fn check() -> Result<(), Failure> {
    if REQUESTED.load(Ordering::Relaxed) { Err("interrupted".into()) } else { Ok(()) }
}
