//! A sink for usage: a receiver that adds up its events gets the total of the charges.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use metering_tests::site::Site;
use serde_json::Value;

use super::never_logged;
use crate::support::wire::BASE;

/// The headers of a request, with lower-case names, and its events.
type Batch = (HashMap<String, String>, Vec<Value>);

/// Responds 503 to the first request, and 204 to the others.
fn receive(listener: &TcpListener, batches: &Sender<Batch>) -> std::io::Result<()> {
    for (number, stream) in listener.incoming().enumerate() {
        let mut stream: TcpStream = stream?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut headers, mut line) = (HashMap::new(), String::new());
        reader.read_line(&mut line)?;
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body)?;
        let status = if number == 0 { "503 Busy" } else { "204 No Content" };
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        if batches.send((headers, serde_json::from_slice(&body).unwrap())).is_err() {
            return Ok(());
        }
    }
    Ok(())
}

fn next(batches: &Receiver<Batch>) -> Batch {
    batches.recv_timeout(Duration::from_secs(60)).expect("a batch arrives")
}

#[test]
fn a_sink_gets_what_was_charged_once_by_id() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/in?token=s3cret", listener.local_addr().unwrap());
    let (sender, batches) = channel();
    std::thread::spawn(move || receive(&listener, &sender));
    let site = Site::verified();
    let account = site.account("2");
    let charge = |server: &metering_tests::server::Server| server.client_with(&account.api_key).get(BASE).expect(200);
    // Charged before the sink exists.
    let before = site.server().start();
    let _ = (charge(&before), charge(&before));
    before.kill();
    let config = format!(
        "[[usage.sinks]]\nname = 'lake'\nurl = '{url}'\nsource = 'https://api.example/u'\ninterval = '10s'\n\
         headers.authorization = 'Bearer t0ken'\n"
    );
    let file = site.write("metering.toml", &config).display().to_string();
    let server = site.server().args(["--config", &file]).start();
    let (headers, first) = next(&batches);
    assert_eq!(headers["content-type"], "application/cloudevents-batch+json; charset=utf-8");
    assert_eq!(headers["authorization"], "Bearer t0ken");
    let _ = charge(&server);
    let (_, again) = next(&batches);
    assert_eq!(again, first, "the failed attempt is repeated unchanged");
    let (_, rest) = next(&batches);
    let events: HashMap<_, _> =
        first.iter().chain(&again).chain(&rest).map(|event| (event["id"].to_string(), event)).collect();
    let sum = |field: &str| events.values().map(|event| event["data"][field].as_i64().unwrap()).sum::<i64>();
    assert_eq!((sum("calls"), sum("credits_used_atoms")), (3, 3_000_000));
    for event in events.values() {
        assert_eq!((&event["source"], &event["type"]), (&"https://api.example/u".into(), &"metering.usage.v1".into()));
        assert_eq!(event["subject"], account.org_id.as_str());
    }
    never_logged(&server, &["s3cret", "t0ken"]);
}
