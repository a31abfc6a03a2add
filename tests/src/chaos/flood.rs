//! Thousands of hostile sockets from a few addresses must not affect an honest client at another address.

use std::io;
use std::net::{self, IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use super::Setting;
use super::callers::{BASE, Count, Kind};
use super::fleet::{Fleet, within};
use super::report::Report;
use crate::load::{LoadPlan, Stop, request, run as run_load};
use crate::site::Site;

/// The longest that an honest request may take during the flood.
const MAX_LATENCY: Duration = Duration::from_secs(2);

/// The last byte of the hostile addresses in 127.0.0.0/8, which has room for many clients on one machine.
const HOSTILE: [u8; 4] = [11, 12, 13, 14];

/// Concurrent sockets of a flood, and of a smoke run.
const SOCKETS: usize = 6_000;
const FEW_SOCKETS: usize = 600;

/// Connections that the planted bug serves at a time.
const SLOTS: usize = 32;

/// How a hostile socket behaves.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
    Idle,
    HalfHead,
    NeverReads,
}

pub(super) fn run(setting: &mut Setting, report: &mut Report) {
    let fleet = Fleet::new(Site::new());
    let server = fleet.server().start();
    let address = if setting.plant { few_slots(server.address()) } else { server.address() };
    let wanted = if setting.is_short() { FEW_SOCKETS } else { SOCKETS };
    let flood = Flood::start(address, wanted);
    within(Duration::from_secs(if setting.plant { 1 } else { 10 }), || {
        flood.opened.load(Ordering::SeqCst) >= u64::try_from(wanted / 2).unwrap_or(0)
    });
    let mut counts = [Count::default(), Count::default()];
    let requests = [("GET", "/health", None), ("GET", BASE, Some(fleet.accounts[0].api_key.as_str()))];
    let mut tried = 0;
    while setting.has_time_left() || tried < 2 {
        let (method, path, key) = requests[tried % 2];
        let plan = LoadPlan::new(address, 1, Stop::AfterRequests(1), vec![request(method, path, key, &[])]);
        let started = Instant::now();
        let result = run_load(LoadPlan { timeout: MAX_LATENCY, ..plan });
        let (took, served) = (started.elapsed(), result.with_status(200) == 1);
        report.add("honest requests", 1);
        report.maximum("slowest honest request, ms", u64::try_from(took.as_millis()).unwrap_or(u64::MAX));
        if !served || took > MAX_LATENCY {
            report.add("honest requests failed or late", 1);
            report.loss(format!("GET {path} during the flood: {}", if served { "late" } else { "no response" }));
        }
        if path == BASE {
            let count = &mut counts[Kind::Plain as usize];
            if served { count.charged += 1 } else { count.unknown += 1 }
        }
        tried += 1;
        thread::sleep(setting.rng.millis(20, 120));
    }
    report.add("hostile sockets opened", flood.opened.load(Ordering::SeqCst));
    flood.end();
    drop(server);
    fleet.compare_with_record(&counts, report);
}

/// The planted bug: a proxy that serves few connections at a time, each until it closes. Returns its address.
fn few_slots(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the machine has a free port");
    let address = listener.local_addr().expect("a listener has an address");
    for _ in 0..SLOTS {
        let listener = listener.try_clone().expect("the machine has file descriptors left");
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let _ = pass(client, server);
            }
        });
    }
    address
}

/// Copies both ways until either side closes.
fn pass(mut client: net::TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut upstream = net::TcpStream::connect(server)?;
    let (mut requests, mut to_server) = (client.try_clone()?, upstream.try_clone()?);
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = io::copy(&mut requests, &mut to_server);
            let _ = to_server.shutdown(Shutdown::Both);
        });
        let _ = io::copy(&mut upstream, &mut client);
        let _ = client.shutdown(Shutdown::Both);
    });
    Ok(())
}

/// Hostile sockets that reconnect whenever the server closes them.
struct Flood {
    opened: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Flood {
    fn start(address: SocketAddr, sockets: usize) -> Self {
        let (opened, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, flag) = (Arc::clone(&opened), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("the machine has file descriptors left").block_on(flood(address, sockets, counter, flag));
        });
        Self { opened, stop, thread }
    }

    fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.join();
    }
}

async fn flood(address: SocketAddr, sockets: usize, opened: Arc<AtomicU64>, stop: Arc<AtomicBool>) {
    for number in 0..sockets {
        let (opened, stop) = (Arc::clone(&opened), Arc::clone(&stop));
        tokio::spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                let _ = hold(address, number, &opened).await;
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
        });
        if number % 100 == 99 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    while !stop.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Opens one socket, misbehaves, and holds it until the server closes it.
async fn hold(address: SocketAddr, number: usize, opened: &AtomicU64) -> io::Result<()> {
    let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, HOSTILE[number % HOSTILE.len()]));
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::new(source, 0))?;
    let mut stream = tokio::time::timeout(Duration::from_secs(5), socket.connect(address)).await??;
    opened.fetch_add(1, Ordering::SeqCst);
    match behaviour(number) {
        Behaviour::Idle => closed(&stream).await,
        Behaviour::HalfHead => {
            stream.write_all(b"GET /health HTTP/1.1\r\nHost: a\r\nX-").await?;
            closed(&stream).await
        }
        Behaviour::NeverReads => {
            let many = b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n".repeat(10);
            stream.write_all(&many).await?;
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(())
        }
    }
}

/// One in sixteen requests a lot and reads nothing, because building responses costs the server more than holding
/// sockets does.
fn behaviour(number: usize) -> Behaviour {
    match number % 16 {
        0 => Behaviour::NeverReads,
        number if number % 2 == 1 => Behaviour::Idle,
        _ => Behaviour::HalfHead,
    }
}

/// Waits until the server closes, or for a long time.
async fn closed(stream: &TcpStream) -> io::Result<()> {
    let _ = tokio::time::timeout(Duration::from_secs(30), stream.readable()).await;
    Ok(())
}
