//! A Debian system booted by its own systemd: `systemd-nspawn`, in its own network with only a loopback interface.
//!
//! It must work with any process 1 and any version of control groups on the host. So it gets a fresh mount of version
//! 2, which only it sees, and is not registered with the host's systemd.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::debian_root::{DebianRoot, printed};
use crate::venv::tool;

/// Boots in a second or two; a loaded machine takes longer.
const BOOT: Duration = Duration::from_secs(60);

/// $0 is the root, $1 the control group. The group is below the mount's root because systemd-nspawn creates others next
/// to its own process. The container must not outlive a test that is killed.
const BOOT_SCRIPT: &str = r#"
mount -t cgroup2 none /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$1"
echo $$ >"/sys/fs/cgroup/$1/cgroup.procs"
exec setpriv --pdeathsig KILL systemd-nspawn --quiet --boot --machine="$1" --register=no --keep-unit --private-network \
  --resolv-conf=off --timezone=off --console=pipe --directory="$0"
"#;

/// Removes the control groups that the container left, children first.
const REMOVE_SCRIPT: &str = r#"
mount -t cgroup2 none /sys/fs/cgroup
echo 1 >"/sys/fs/cgroup/$0/cgroup.kill"
for attempt in $(seq 100); do
  find "/sys/fs/cgroup/$0" -depth -type d -exec rmdir {} + 2>/dev/null && exit
  sleep 0.1
done
exit 1
"#;

/// A running system. Dropping it ends it as a power cut would.
#[derive(Debug)]
pub struct BootedSystem {
    name: String,
    nspawn: Child,
    /// Process 1 of the system, as the host numbers it.
    init: u32,
    log: TempDir,
}

impl BootedSystem {
    /// Boots a system and waits until all of its units are started.
    #[must_use]
    #[track_caller]
    pub fn boot(root: &DebianRoot) -> Self {
        let log = tempfile::tempdir().expect("a temporary folder can be created");
        // The name of the temporary folder is one that no other test has.
        let unique: String = log.path().to_string_lossy().chars().filter(char::is_ascii_alphanumeric).collect();
        let name = format!("metering-{unique}").to_lowercase();
        let output = std::fs::File::create(log.path().join("log")).expect("the log can be created");
        let mut nspawn = in_mounts_of_its_own(BOOT_SCRIPT);
        nspawn.arg(root.path("/")).arg(&name).stdin(Stdio::null());
        nspawn.stdout(output.try_clone().expect("the log can be opened twice")).stderr(output);
        let nspawn = nspawn.spawn().expect("unshare can be run");
        let mut system = Self { name, nspawn, init: 0, log };
        system.wait();
        system
    }

    /// The archive of a fresh system with systemd, made by `./test.sh`.
    #[must_use]
    pub fn archive() -> PathBuf {
        tool("systemd-root.tar")
    }

    #[track_caller]
    fn wait(&mut self) {
        let started = Instant::now();
        let mut state = String::new();
        while started.elapsed() < BOOT {
            let ended = self.nspawn.try_wait().expect("systemd-nspawn can be waited for");
            assert!(ended.is_none(), "systemd-nspawn ended: {ended:?}: {}", self.console());
            // Its first child is replaced by process 1 of the system.
            if let Some(init) = child_of(self.nspawn.id()) {
                self.init = init;
                let output = self.command("systemctl is-system-running").output().expect("nsenter can be run");
                state = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                if state == "running" {
                    return;
                }
                assert_ne!(state, "degraded", "{}", self.run("systemctl --failed --no-pager"));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("the system did not boot within {BOOT:?}; it is {state:?}: {}", self.console());
    }

    fn console(&self) -> String {
        std::fs::read_to_string(self.log.path().join("log")).unwrap_or_default()
    }

    /// A shell command in the system, as root.
    #[must_use]
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--all", "--target", &self.init.to_string(), "sh", "-ec", line]).stdin(Stdio::null());
        command.env_clear().env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        command
    }

    /// Runs a shell command as root, and returns what it printed.
    #[track_caller]
    pub fn run(&self, line: &str) -> String {
        printed(line, &self.command(line).output().expect("nsenter can be run"))
    }
}

impl Drop for BootedSystem {
    fn drop(&mut self) {
        let _ = in_mounts_of_its_own(REMOVE_SCRIPT).arg(&self.name).status();
        let _ = self.nspawn.kill();
        let _ = self.nspawn.wait();
    }
}

fn in_mounts_of_its_own(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-ec", script]);
    command
}

fn child_of(process: u32) -> Option<u32> {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}
