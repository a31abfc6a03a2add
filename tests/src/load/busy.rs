//! How busy the generator's own thread is: if it is always busy, the measured rate is the generator's, not the
//! server's.

use std::fs;
use std::time::Duration;

/// The processor time of the calling thread so far; `None` where the kernel does not provide it.
pub(super) fn thread_time() -> Option<Duration> {
    on_processor(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// The first field of a `schedstat`: nanoseconds spent on a processor.
pub(crate) fn on_processor(schedstat: &str) -> Option<Duration> {
    schedstat.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn first_field_is_processor_time() {
        assert_eq!(on_processor("1500 20 3\n"), Some(Duration::from_nanos(1_500)));
        assert_eq!((on_processor(""), on_processor("x 1 2")), (None, None));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn working_counts_as_busy_and_sleeping_does_not() {
        let before = thread_time().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        let slept = thread_time().unwrap();
        assert!(slept - before < Duration::from_millis(50));
        let started = Instant::now();
        while thread_time().unwrap() - slept < Duration::from_millis(30) {
            assert!(started.elapsed() < Duration::from_secs(30), "no processor time despite being busy");
        }
    }
}
