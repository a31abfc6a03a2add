//! A real PostgreSQL: a separate cluster, in its own folder, on a free port.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tempfile::TempDir;

use crate::batches::Batches;
use crate::ports::free_address;
use crate::wait::until;

/// Set by `./test.sh` where PostgreSQL is not installed.
const SKIP: &str = "TESTS_SKIP_POSTGRES";

/// Stands between a test and its server. When the test's process ends, however it ends, this reads the end of its
/// input, stops the server, and removes its folder. Nothing else would remove it after a kill, or for a server that all
/// tests share. A line of input keeps the folder.
const WATCHER: &str = r#"folder=$1; shift; "$@" & server=$!
read -r keep; kill -INT "$server"; wait "$server"; [ -n "$keep" ] || rm -rf "$folder""#;

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub struct Cluster {
    watcher: Child,
    port: u16,
    settings: Vec<String>,
    folder: TempDir,
    schemas: Batches,
}

/// Whether tests on PostgreSQL are disabled.
#[must_use]
#[track_caller]
pub fn is_skipped() -> bool {
    crate::skipped::by(SKIP)
}

/// The URL of a new schema in the shared cluster; `None` if tests on PostgreSQL are disabled.
#[must_use]
#[track_caller]
pub fn fresh_schema() -> Option<String> {
    (!is_skipped()).then(|| Cluster::shared().fresh_schema())
}

/// The schema in a URL from [`Cluster::fresh_schema`].
#[must_use]
pub fn schema_of(url: &str) -> &str {
    url.rsplit_once("%3D").expect("the URL names a schema").1
}

/// Runs SQL in the schema of a URL from the shared cluster, and returns what it printed.
///
/// # Panics
/// Same as [`schema_of`] and [`Cluster::run`].
#[track_caller]
pub fn run_in(url: &str, sql: &str) -> String {
    Cluster::shared().run(&format!("SET search_path = {}; {sql}", schema_of(url)))
}

impl Cluster {
    /// Starts one, with further settings (`-c name=value`), and returns once it responds.
    #[must_use]
    #[track_caller]
    pub fn start(settings: &[&str]) -> Self {
        Self::start_on(ClusterFolder::new(folder()), settings)
    }

    /// Like [`Cluster::start`], with its data in a new folder below `parent`, on the disk of that folder.
    #[must_use]
    #[track_caller]
    pub fn start_in(parent: &Path, settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("metering-postgres-").tempdir_in(parent);
        Self::start_on(ClusterFolder::new(folder.expect("a folder can be created on the disk")), settings)
    }

    #[track_caller]
    fn start_on(cluster_folder: ClusterFolder, settings: &[&str]) -> Self {
        cluster_folder.make();
        cluster_folder.started(settings)
    }

    /// Starts one with TLS, using this certificate and key (PEM).
    #[must_use]
    #[track_caller]
    pub fn start_with_tls(certificate: &str, key: &str) -> Self {
        let cluster_folder = ClusterFolder::new(folder());
        cluster_folder.make();
        cluster_folder.write("server.crt", certificate);
        cluster_folder.write("server.key", key);
        let file = |name| cluster_folder.folder.path().join(name).display().to_string();
        let (certificate, key) = (file("server.crt"), file("server.key"));
        let settings = ["fsync=off", "ssl=on", &format!("ssl_cert_file={certificate}"), &format!("ssl_key_file={key}")];
        cluster_folder.started(&settings)
    }

    /// Starts a standby that follows this server and serves queries.
    #[must_use]
    #[track_caller]
    pub fn standby(&self) -> Self {
        let cluster_folder = ClusterFolder::new(folder());
        let from = format!("host=127.0.0.1 port={} user=metering application_name=standby", self.port);
        let options = ["--write-recovery-conf", "--checkpoint=fast", "--no-sync", "-d", &from, "-D"];
        cluster_folder.run("pg_basebackup", &options);
        cluster_folder.started(&["fsync=off"])
    }

    /// One for all tests of this process that only need their own schema. It need not survive a power loss, so it does
    /// not wait for the disk.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Self::start(&["fsync=off", "full_page_writes=off"]))
    }

    /// Terminates all connections except this command's, as an operator or a fault may.
    #[track_caller]
    pub fn end_connections(&self) {
        let all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        let _ = self.run(all);
    }

    /// Kills the server immediately, as in a power loss, and starts it again on the same port.
    #[track_caller]
    pub fn crash(&mut self) {
        self.kill();
        self.start_again();
    }

    /// Restarts a killed server on the same port.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.watcher = spawn(self.folder.path(), self.port, &self.settings);
        self.wait();
    }

    /// Promotes a standby to primary, and returns once it accepts writes.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.run("SELECT pg_promote()"), "t");
    }

    /// Kills the server immediately, as in a power loss.
    ///
    /// # Panics
    /// If it is not running.
    #[track_caller]
    pub fn kill(&mut self) {
        let data = self.folder.path().join("data");
        let pid = fs::read_to_string(data.join("postmaster.pid")).expect("a running server has a process id file");
        let pid = pid.lines().next().expect("the first line is the id").to_owned();
        // SIGQUIT: no clean-up, no checkpoint; committed data is in the log.
        let killed = Command::new("kill").args(["-QUIT", &pid]).status();
        assert!(killed.is_ok_and(|status| status.success()), "the server could not be killed");
        if let Some(mut input) = self.watcher.stdin.take() {
            input.write_all(b"keep\n").expect("the watcher is there");
        }
        let _ = self.watcher.wait();
    }

    /// From now on accepts only these clients: lines of `pg_hba.conf`.
    #[track_caller]
    pub fn admit(&self, lines: &str) {
        let file = self.folder.path().join("data").join("pg_hba.conf");
        // Tests themselves connect through the socket.
        fs::write(file, format!("local all all trust\n{lines}\n")).expect("a running server has its file");
        self.run("SELECT pg_reload_conf()");
    }

    /// The URL of its database.
    #[must_use]
    pub fn url(&self) -> String {
        format!("postgres://metering@127.0.0.1:{}/postgres", self.port)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// The folder of its socket.
    #[must_use]
    pub fn socket_folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of a new, empty schema.
    #[must_use]
    #[track_caller]
    pub fn fresh_schema(&self) -> String {
        // A standby has other names than its primary, which it may replace.
        let schema = |number| format!("fresh_{}_{number}", self.port);
        let create = |number| format!("CREATE SCHEMA {};", schema(number));
        let number = self.schemas.next(create, |sql| drop(self.run(sql)));
        format!("{}?options=-c%20search_path%3D{}", self.url(), schema(number))
    }

    /// Runs SQL, and returns what it printed.
    #[track_caller]
    pub fn run(&self, sql: &str) -> String {
        let result = self.psql(sql);
        let result = result.expect("psql can be run");
        assert!(result.status.success(), "{sql}: {}", String::from_utf8_lossy(&result.stderr));
        String::from_utf8_lossy(&result.stdout).trim().to_owned()
    }

    /// Runs statements one by one.
    #[track_caller]
    pub fn run_all(&self, statements: &[&str]) {
        for sql in statements {
            self.run(sql);
        }
    }

    fn psql(&self, sql: &str) -> std::io::Result<std::process::Output> {
        let mut command = Command::new(program("psql"));
        command.args(["-X", "-q", "-A", "-t", "-U", "metering", "-p", &self.port.to_string(), "-c", sql, "postgres"]);
        command.arg("-h").arg(self.folder.path()).output()
    }

    #[track_caller]
    fn wait(&self) {
        until("postgres responds", || self.psql("SELECT 1").is_ok_and(|result| result.status.success()));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
    }
}

/// A folder for a server that does not run yet.
struct ClusterFolder {
    folder: TempDir,
    user: ServerUser,
}

impl ClusterFolder {
    fn new(folder: TempDir) -> Self {
        let user = ServerUser::find();
        chown(folder.path(), Some(user.id), Some(user.group)).expect("the folder's owner can be changed");
        Self { folder, user }
    }

    #[track_caller]
    fn make(&self) {
        self.run("initdb", &["-U", "metering", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]);
    }

    /// Runs a program whose last argument is the data folder.
    #[track_caller]
    fn run(&self, name: &str, options: &[&str]) {
        let result = self.user.command(&program(name)).args(options).arg(self.folder.path().join("data")).output();
        let result = result.expect("the programs of PostgreSQL can be run");
        assert!(result.status.success(), "{name}: {}", String::from_utf8_lossy(&result.stderr));
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("the file can be written");
        chown(&path, Some(self.user.id), Some(self.user.group)).expect("the file's owner can be changed");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file's mode can be set");
    }

    #[track_caller]
    fn started(self, settings: &[&str]) -> Cluster {
        let port = free_address().port();
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let watcher = spawn(self.folder.path(), port, &settings);
        let cluster = Cluster { watcher, port, settings, folder: self.folder, schemas: Batches::new() };
        cluster.wait();
        cluster
    }
}

/// Starts the server and its watcher.
fn spawn(folder: &Path, port: u16, settings: &[String]) -> Child {
    let mut command = ServerUser::find().command(Path::new("sh"));
    command.args(["-c", WATCHER, "sh"]).arg(folder).arg(program("postgres")).arg("-D").arg(folder.join("data"));
    command.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=300"]);
    // Shared memory is a file in the folder too, so a killed server leaves nothing behind.
    command.args(["-c", "dynamic_shared_memory_type=mmap"]);
    command.arg("-k").arg(folder).args(settings.iter().flat_map(|setting| ["-c", setting]));
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log"));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log.expect("a log can be written"));
    command.spawn().expect("postgres can be run")
}

/// In memory where there is such a folder: durability is tested by killing servers, not by waiting for a disk.
pub(crate) fn folder() -> TempDir {
    let memory = Path::new("/dev/shm");
    let result = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    result.expect("a temporary folder can be created")
}

/// PostgreSQL refuses to run as root.
pub(crate) struct ServerUser {
    pub(crate) id: u32,
    pub(crate) group: u32,
    own: bool,
}

impl ServerUser {
    pub(crate) fn find() -> Self {
        let number = |args: &[&str]| {
            let printed = Command::new("id").args(args).output().ok()?;
            String::from_utf8_lossy(&printed.stdout).trim().parse::<u32>().ok()
        };
        let own = (number(&["-u"]).unwrap_or_default(), number(&["-g"]).unwrap_or_default());
        if own.0 != 0 {
            return Self { id: own.0, group: own.1, own: true };
        }
        let of = |flag| number(&[flag, "postgres"]).or_else(|| number(&[flag, "nobody"]));
        let id = of("-u").expect("there is a user that is not root");
        Self { id, group: of("-g").unwrap_or(id), own: false }
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if !self.own {
            command.uid(self.id).gid(self.group);
        }
        // The current folder may be one that the server's user cannot read.
        command.current_dir("/");
        command
    }
}

/// A program of the newest installed PostgreSQL. Debian keeps a folder per version, and none is in the PATH.
pub(crate) fn program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let found = versions.map(|version| version.path().join("bin").join(name)).filter(|path| path.is_file());
    found.max().unwrap_or_else(|| PathBuf::from(name))
}
