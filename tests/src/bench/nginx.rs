//! A real nginx (Debian's package) with its own configuration: as an upstream, and as the proxy to compare with.

pub(super) mod config;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

use super::Failure;
use crate::daemon::{Daemon, folder};
use crate::ports::free_address;
use config::{Account, configuration};

/// A running nginx, which ends on drop.
#[derive(Debug)]
pub(super) struct Nginx {
    daemon: Daemon,
    addresses: Vec<SocketAddr>,
}

impl Nginx {
    /// Starts one worker that serves files with these paths and contents.
    pub(super) fn files(program: &Path, data_dir: &Path, files: &[(String, Vec<u8>)]) -> Result<Self, Failure> {
        let folder = folder("nginx", data_dir)?;
        let root = folder.path().join("files");
        for (path, content) in files {
            let file = root.join(path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            fs::write(file, content)?;
        }
        let address = free_address();
        Self::start(program, folder, "1", &[(address, config::files(address, &root))])
    }

    /// Starts a proxy with a worker per core, as Debian configures it, and these servers.
    pub(super) fn proxies(program: &Path, data_dir: &Path, servers: &[(SocketAddr, String)]) -> Result<Self, Failure> {
        Self::start(program, folder("nginx", data_dir)?, "auto", servers)
    }

    fn start(
        program: &Path,
        folder: TempDir,
        workers: &str,
        servers: &[(SocketAddr, String)],
    ) -> Result<Self, Failure> {
        // Workers of root would run as a user who may not read the folder.
        let account = if folder.path().metadata()?.uid() == 0 { Account::Root } else { Account::User };
        let blocks = servers.iter().map(|(_, server)| server.as_str()).collect::<String>();
        let file = folder.path().join("nginx.conf");
        fs::write(&file, configuration(folder.path(), account, workers, &blocks))?;
        let addresses: Vec<_> = servers.iter().map(|(address, _)| *address).collect();
        let daemon = Daemon::start(program, ["-c".as_ref(), file.as_os_str()], folder, &addresses)?;
        Ok(Self { daemon, addresses })
    }

    /// Where its first server listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// The ids of its processes.
    pub(super) fn processes(&self) -> Vec<u32> {
        self.daemon.processes()
    }
}
