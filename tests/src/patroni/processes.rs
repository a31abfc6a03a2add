//! The processes of a cluster, and how they end with the test.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Stands between a test and its cluster. When the test's process ends, however it ends, this reads the end of its
/// input, and ends every process that is listed in the folder, and every PostgreSQL whose data is there. PostgreSQL is
/// not killed, because that would leave its shared memory.
const WATCHER: &str = r#"read -r end
for file in "$1"/processes/*; do
  [ -f "$file" ] && kill -KILL "${file##*/}" 2>/dev/null
done
for file in "$1"/*/data/postmaster.pid; do
  [ -f "$file" ] && read -r id < "$file" && kill -CONT "$id" && kill -QUIT "$id"
  while [ -f "$file" ] && kill -0 "$id" 2>/dev/null; do sleep 0.1; done
done
rm -rf "$1""#;

/// Running processes. Dropping this ends them.
#[derive(Debug)]
pub(super) struct Processes {
    watcher: Child,
    children: Vec<Child>,
    folder: PathBuf,
}

impl Processes {
    pub(super) fn new(cluster: &Path) -> Self {
        let folder = cluster.join("processes");
        fs::create_dir(&folder).expect("a folder can be created");
        let mut watcher = Command::new("sh");
        watcher.args(["-c", WATCHER, "sh"]).arg(cluster);
        let watcher = watcher.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("sh can be run");
        Self { watcher, children: Vec::new(), folder }
    }

    /// Starts a process, and returns its id.
    pub(super) fn start(&mut self, mut command: Command, log: &Path) -> u32 {
        let log = || OpenOptions::new().create(true).append(true).open(log).expect("a log can be written");
        let child = command.stdin(Stdio::null()).stdout(log()).stderr(log()).spawn();
        let child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let id = child.id();
        self.children.push(child);
        fs::write(self.folder.join(id.to_string()), "").expect("a process can be listed");
        id
    }

    /// Waits for a process that was killed.
    pub(super) fn forget(&mut self, id: u32) {
        if let Some(position) = self.children.iter().position(|child| child.id() == id) {
            let _ = self.children.swap_remove(position).wait();
        }
        let _ = fs::remove_file(self.folder.join(id.to_string()));
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        drop(self.watcher.stdin.take());
        let _ = self.watcher.wait();
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}
