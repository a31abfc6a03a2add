//! nginx configuration.

use std::net::SocketAddr;
use std::path::Path;

/// The header with the secret of `POST /internal/billing/deduct`.
const SECRET_HEADER: &str = "X-BDS-Internal-Billing-Secret";

/// Who runs nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::bench) enum Account {
    Root,
    User,
}

/// The whole file. No request is logged, no connection is closed, and no response is written to disk.
pub(super) fn configuration(folder: &Path, account: Account, workers: &str, servers: &str) -> String {
    let folder = folder.display();
    let user = if account == Account::Root { "user root;" } else { "" };
    format!(
        "daemon off; {user} worker_processes {workers}; pid \"{folder}/nginx.pid\"; error_log stderr;\n\
         events {{ worker_connections 16384; }}\n\
         http {{\n\
           access_log off; default_type application/json;\n\
           sendfile on; tcp_nopush on; open_file_cache max=100;\n\
           keepalive_requests 1000000000; keepalive_timeout 1h;\n\
           proxy_http_version 1.1; proxy_buffers 32 8k; proxy_max_temp_file_size 0; proxy_read_timeout 1h;\n\
           client_body_temp_path \"{folder}/body\"; proxy_temp_path \"{folder}/proxy\";\n\
           fastcgi_temp_path \"{folder}/fastcgi\"; uwsgi_temp_path \"{folder}/uwsgi\"; scgi_temp_path \"{folder}/scgi\";\n\
         {servers}}}\n"
    )
}

/// A server of the files below `root`.
pub(super) fn files(listen: SocketAddr, root: &Path) -> String {
    format!("server {{ listen {listen} backlog=4096; root \"{}\"; }}\n", root.display())
}

/// A plain reverse proxy.
pub(in crate::bench) fn proxy(listen: SocketAddr, upstream: SocketAddr) -> String {
    let (name, pool) = pool(listen, "upstream", upstream);
    format!(
        "{pool}server {{ listen {listen} backlog=4096;\n\
         location / {{ proxy_pass http://{name}; proxy_set_header Connection \"\"; }} }}\n"
    )
}

/// A reverse proxy for event streams, which sends each event immediately.
pub(in crate::bench) fn stream_proxy(listen: SocketAddr, upstream: SocketAddr) -> String {
    let (name, pool) = pool(listen, "upstream", upstream);
    format!(
        "{pool}server {{ listen {listen} backlog=4096;\n\
         location / {{ proxy_pass http://{name}; proxy_set_header Connection \"\"; proxy_buffering off; }} }}\n"
    )
}

/// A reverse proxy that has `meter` charge each request first, by `POST /internal/billing/deduct` with the client's
/// key.
pub(in crate::bench) fn charging_proxy(
    listen: SocketAddr,
    upstream: SocketAddr,
    meter: SocketAddr,
    secret: &str,
) -> String {
    let (upstream, upstream_pool) = pool(listen, "upstream", upstream);
    let (meter, meter_pool) = pool(listen, "meter", meter);
    format!(
        "{upstream_pool}{meter_pool}server {{ listen {listen} backlog=4096;\n\
         location / {{ auth_request /deduct; proxy_pass http://{upstream}; proxy_set_header Connection \"\"; }}\n\
         location = /deduct {{ internal; proxy_pass http://{meter}/internal/billing/deduct; proxy_method POST;\n\
           proxy_set_header Connection \"\"; proxy_set_header Content-Type application/json;\n\
           proxy_set_header {SECRET_HEADER} \"{secret}\";\n\
           proxy_set_body '{{\"path\":\"$request_uri\",\"method\":\"$request_method\"}}'; }} }}\n"
    )
}

/// Connections that are kept open to a server behind the one at `listen`.
fn pool(listen: SocketAddr, purpose: &str, to: SocketAddr) -> (String, String) {
    let name = format!("{purpose}_{}", listen.port());
    let block = format!(
        "upstream {name} {{ server {to}; keepalive 512; keepalive_requests 1000000000; keepalive_time 1h; }}\n"
    );
    (name, block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::tools::Tools;
    use std::process::Command;

    const ADDRESSES: [&str; 4] = ["127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004"];

    #[test]
    fn each_server_has_pools_of_its_own() {
        let [upstream, meter, plain, charging] = ADDRESSES.map(|address| address.parse().unwrap());
        let blocks = [proxy(plain, upstream), charging_proxy(charging, upstream, meter, "a secret")].concat();
        for expected in [
            "upstream upstream_7003 { server 127.0.0.1:7001;",
            "upstream upstream_7004 { server 127.0.0.1:7001;",
            "upstream meter_7004 { server 127.0.0.1:7002;",
            "proxy_pass http://meter_7004/internal/billing/deduct; proxy_method POST;",
            "proxy_set_header X-BDS-Internal-Billing-Secret \"a secret\";",
        ] {
            assert_eq!(blocks.matches(expected).count(), 1, "{expected}: {blocks}");
        }
    }

    #[test]
    fn only_root_names_the_account_of_its_workers() {
        let file = |account| configuration(Path::new("/x"), account, "auto", "");
        assert!(file(Account::Root).contains("user root;") && !file(Account::User).contains("user "));
    }

    #[test]
    fn nginx_accepts_the_configuration() {
        if crate::skipped::by("TESTS_SKIP_YARDSTICKS") {
            return;
        }
        let nginx = Tools::find().nginx.expect("nginx is installed; ./test.sh does that");
        let folder = tempfile::tempdir().unwrap();
        let [upstream, meter, plain, charging] = ADDRESSES.map(|address| address.parse().unwrap());
        let blocks = [
            files(upstream, folder.path()),
            proxy(plain, upstream),
            stream_proxy(meter, upstream),
            charging_proxy(charging, upstream, meter, "a secret"),
        ];
        let file = folder.path().join("nginx.conf");
        std::fs::write(&file, configuration(folder.path(), Account::User, "1", &blocks.concat())).unwrap();
        let output = Command::new(nginx).arg("-t").arg("-c").arg(&file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
