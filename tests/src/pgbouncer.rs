//! A real PgBouncer (Debian's package) in front of a test's PostgreSQL.

use std::fmt::Write as _;
use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::batches::Batches;
use crate::ports::free_address;
use crate::postgres::{Cluster, ServerUser, folder};
use crate::wait::until;

/// Set by `./test.sh` where PgBouncer is not installed.
const SKIP: &str = "TESTS_SKIP_PGBOUNCER";

/// How many schemas one pooler can give out, because its users are listed when it starts.
const SCHEMAS: u32 = 1024;

/// Ends the pooler when the test's process ends, however it ends.
const WATCHER: &str = r#"folder=$1; shift; "$@" & server=$!
read -r end; kill -INT "$server"; wait "$server"; rm -rf "$folder""#;

/// A running PgBouncer. Dropping it ends it.
#[derive(Debug)]
pub struct Pooler<'c> {
    watcher: Child,
    port: u16,
    cluster: &'c Cluster,
    schemas: Batches,
    _folder: TempDir,
}

/// Whether tests with PgBouncer are disabled.
#[must_use]
#[track_caller]
pub fn is_skipped() -> bool {
    crate::postgres::is_skipped() || crate::skipped::by(SKIP)
}

impl<'c> Pooler<'c> {
    /// Starts a pooler with few connections to the server, shared as widely as `mode` (`session`, `transaction`,
    /// `statement`) allows.
    #[must_use]
    #[track_caller]
    pub fn start(cluster: &'c Cluster, mode: &str) -> Self {
        let (folder, user, port) = (folder(), ServerUser::find(), free_address().port());
        let own = |path: &Path| chown(path, Some(user.id), Some(user.group)).expect("the file's owner can be changed");
        own(folder.path());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("a folder's mode can be set");
        let mut users = String::from("\"metering\" \"\"\n");
        for number in 0..SCHEMAS {
            let _ = writeln!(users, "\"{}\" \"\"", role(port, number));
        }
        let (users_file, config_file) = (folder.path().join("users.txt"), folder.path().join("pgbouncer.ini"));
        fs::write(&users_file, users).expect("the file can be written");
        let server = cluster.address();
        // Server connections are used round-robin, so that consecutive transactions rarely share one.
        let config = format!(
            "[databases]\n* = host={} port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = {mode}\ndefault_pool_size = 8\n\
             server_round_robin = 1\nserver_idle_timeout = 2\nmax_db_connections = 100\nmax_client_conn = 500\nlogfile = {}\n",
            server.ip(),
            server.port(),
            users_file.display(),
            folder.path().join("log").display(),
        );
        fs::write(&config_file, config).expect("the file can be written");
        own(&users_file);
        own(&config_file);
        let mut command = user.command(Path::new("sh"));
        command.args(["-c", WATCHER, "sh"]).arg(folder.path()).arg(program()).arg("-q").arg(&config_file);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let watcher = command.spawn().expect("pgbouncer can be run");
        let pooler = Self { watcher, port, cluster, schemas: Batches::new(), _folder: folder };
        until("pgbouncer listens", || TcpStream::connect(pooler.address()).is_ok());
        pooler
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The URLs of a new, empty schema: through the pooler, and directly.
    #[must_use]
    #[track_caller]
    pub fn fresh_schema(&self) -> (String, String) {
        // A pooler does not forward connection options, so a role sets the schema.
        let create = |number| {
            let role = role(self.port, number);
            format!(
                "CREATE SCHEMA {role}; CREATE ROLE {role} LOGIN SUPERUSER; ALTER ROLE {role} SET search_path = {role};"
            )
        };
        let number = self.schemas.next(create, |sql| drop(self.cluster.run(sql)));
        assert!(number < SCHEMAS, "a pooler gives out {SCHEMAS} schemas");
        let role = role(self.port, number);
        let url = |address: SocketAddr| format!("postgres://{role}@{address}/postgres");
        (url(self.address()), url(self.cluster.address()))
    }
}

impl Drop for Pooler<'_> {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// Schemas belong to a server, which several poolers may share.
fn role(port: u16, number: u32) -> String {
    format!("pooled_{port}_{number}")
}

fn program() -> PathBuf {
    // Debian installs it where a user's PATH may not include it.
    let usual = PathBuf::from("/usr/sbin/pgbouncer");
    if usual.is_file() { usual } else { PathBuf::from("pgbouncer") }
}
