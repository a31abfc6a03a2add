//! Clients that each hold a stream open and count its events.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::events::END;
use crate::bench::Failure;
use crate::bench::background::Background;

/// How many streams open at the same time.
const OPENING: usize = 256;
/// How long it may take until all are open.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Open streams. Dropping them closes their connections.
#[derive(Debug)]
pub(super) struct Clients {
    counts: Arc<Counts>,
    _runtime: Background,
}

#[derive(Debug, Default)]
struct Counts {
    open: AtomicUsize,
    events: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Clients {
    /// Opens `count` streams with these requests in turn, and returns once each has had an event.
    ///
    /// # Errors
    /// If one fails, or they take too long.
    pub(super) fn open(address: SocketAddr, requests: &Arc<[Vec<u8>]>, count: usize) -> Result<Self, Failure> {
        let (runtime, counts) = (Background::start()?, Arc::<Counts>::default());
        let opening = Arc::new(Semaphore::new(OPENING));
        for index in 0..count {
            let (counts, opening, requests) = (Arc::clone(&counts), Arc::clone(&opening), Arc::clone(requests));
            runtime.spawn(async move {
                let error = match follow(address, &requests[index % requests.len()], &opening, &counts).await {
                    Ok(()) => "the stream ended".to_owned(),
                    Err(error) => error.to_string(),
                };
                counts.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            });
        }
        let clients = Self { counts, _runtime: runtime };
        let started = Instant::now();
        while clients.counts.open.load(Ordering::Relaxed) < count {
            clients.require_open()?;
            if started.elapsed() > TIMEOUT {
                return Err(format!("{count} streams did not open within {} s", TIMEOUT.as_secs()).into());
            }
            thread::sleep(Duration::from_millis(1));
        }
        Ok(clients)
    }

    /// How many events have arrived.
    pub(super) fn events(&self) -> u64 {
        self.counts.events.load(Ordering::Relaxed)
    }

    /// Fails if a stream failed or ended.
    pub(super) fn require_open(&self) -> Result<(), Failure> {
        match &*self.counts.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(format!("a stream failed: {failure}").into()),
            None => Ok(()),
        }
    }
}

/// Opens a stream, and reads it to its end.
async fn follow(address: SocketAddr, request: &[u8], opening: &Semaphore, counts: &Counts) -> io::Result<()> {
    let permit = opening.acquire().await.map_err(io::Error::other)?;
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request).await?;
    let (mut buffer, mut last, mut read) = ([0; 1_024], 0, Vec::new());
    // The head, and the first event.
    loop {
        let length = stream.read(&mut buffer).await?;
        read.extend_from_slice(&buffer[..length]);
        let events = count_events(&read, &mut last);
        if length == 0 || events > 0 {
            require_ok(&read)?;
            counts.events.fetch_add(events, Ordering::Relaxed);
            break;
        }
        last = 0;
    }
    counts.open.fetch_add(1, Ordering::Relaxed);
    drop((permit, read));
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            length => counts.events.fetch_add(count_events(&buffer[..length], &mut last), Ordering::Relaxed),
        };
    }
}

fn require_ok(response: &[u8]) -> io::Result<()> {
    if response.starts_with(b"HTTP/1.1 200 ") {
        return Ok(());
    }
    Err(io::Error::other(format!("not a stream: {}", String::from_utf8_lossy(response))))
}

/// How many events end in these bytes, whose predecessor is `last`. Lines of HTTP end in CR LF, so they do not count.
fn count_events(bytes: &[u8], last: &mut u8) -> u64 {
    let mut events = 0;
    for byte in bytes {
        events += u64::from([*last, *byte] == *END);
        *last = *byte;
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Reply, serve};

    #[test]
    fn events_are_counted_across_reads_and_chunks() {
        let text = b"HTTP/1.1 200 OK\r\n\r\n6\r\ndata\n\n\r\n4\r\nda\n\n\r\n";
        for split in 0..text.len() {
            let mut last = 0;
            let (head, tail) = text.split_at(split);
            assert_eq!(count_events(head, &mut last) + count_events(tail, &mut last), 2, "{split}");
        }
    }

    #[test]
    fn refused_and_ended_streams_are_errors() {
        let open = |reply: &'static str| {
            let address = serve(move |_| Reply::SendAndClose(reply.as_bytes().to_vec()));
            Clients::open(address, &vec![b"GET / HTTP/1.1\r\n\r\n".to_vec()].into(), 1)
        };
        let refused = open("HTTP/1.1 429 Too Many Requests\r\ncontent-length: 0\r\n\r\n");
        assert!(refused.unwrap_err().to_string().contains("429"));
        let started = Instant::now();
        if let Ok(clients) = open("HTTP/1.1 200 OK\r\n\r\ndata: x\n\n") {
            while clients.require_open().is_ok() {
                assert!(started.elapsed() < TIMEOUT);
                thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(clients.events(), 1);
        }
    }
}
