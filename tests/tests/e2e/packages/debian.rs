//! The package in a fresh Debian: installed, used, upgraded, removed and purged.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use metering_tests::debian_root::DebianRoot;
use metering_tests::server::{Server, ServerSetup};
use metering_tests::venv::program;
use serde_json::Value;

use super::{package, run, skips};

const CONFIGURATION: &str = "/etc/metering/metering.toml";
const UNIT: &str = "/usr/lib/systemd/system/metering-server.service";
const ENABLED: &str = "/etc/systemd/system/multi-user.target.wants/metering-server.service";

/// The same package as version `version`, with another configuration file.
fn later(folder: &Path, version: u32) -> PathBuf {
    let (unpacked, changed) = (folder.join("later"), folder.join(format!("{version}.deb")));
    run(Command::new("dpkg-deb").arg("-R").arg(package()).arg(&unpacked));
    let edit = |path: &str, edit: &dyn Fn(String) -> String| {
        let path = unpacked.join(path);
        let text = std::fs::read_to_string(&path).unwrap();
        let edited = edit(text.clone());
        assert_ne!(text, edited);
        std::fs::write(&path, edited).unwrap();
    };
    edit("DEBIAN/control", &|text| text.replace("Version: 1.0-1", &format!("Version: {version}.0-1")));
    edit("etc/metering/metering.toml", &|text| text + &format!("# New in version {version}\n"));
    run(Command::new("dpkg-deb").args(["-Znone", "-b"]).arg(&unpacked).arg(&changed));
    std::fs::remove_dir_all(unpacked).unwrap();
    changed
}

/// Installs or upgrades without a person at the terminal: a configuration file that was changed is kept.
fn install(root: &DebianRoot, package: &Path) {
    let package = root.take(package);
    root.run("root", &format!("dpkg --force-confold -i {package} && rm {package}"));
}

/// The settings of the unit about starting the server.
fn setting(unit: &str, name: &str) -> String {
    let found = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name}: {unit}")).to_owned()
}

/// Starts the server as the unit would: its command, user and folder. Only the address differs, since the port of the
/// configuration may be in use.
fn start(root: &DebianRoot) -> Server {
    let unit = root.read(UNIT);
    let folder = setting(&unit, "WorkingDirectory");
    let line = format!("cd {folder} && umask {} && exec {}", setting(&unit, "UMask"), setting(&unit, "ExecStart"));
    let mut command = root.command(&setting(&unit, "User"), "sh");
    command.args(["-ec", &line]).env("METERING_LISTEN", "127.0.0.1:0");
    ServerSetup::of_command(command).start()
}

fn admin(root: &DebianRoot, line: &str) -> String {
    root.run("metering", &format!("metering admin --config {CONFIGURATION} {line}"))
}

/// Mode, user and group of a file.
fn access(root: &DebianRoot, path: &str) -> String {
    root.run("root", &format!("stat -c '%a %U:%G' {path}")).trim().to_owned()
}

fn balance(server: &Server, key: &str) -> String {
    server.client_with(key).get("/credits/balance").expect(200).member("credit_balance")
}

#[test]
fn package_is_installed_upgraded_removed_and_purged() {
    metering_tests::skip_if!(skips());
    let (root, folder) = (DebianRoot::new(), tempfile::tempdir().unwrap());
    install(&root, package());
    assert_eq!(access(&root, CONFIGURATION), "640 root:metering");
    assert_eq!(access(&root, "/etc/metering/credentials"), "700 root:root");
    assert_eq!(access(&root, "/var/lib/metering"), "700 metering:metering");
    assert!(root.read("/etc/passwd").contains(":/var/lib/metering:/usr/sbin/nologin"));
    assert!(root.path(ENABLED).is_symlink());

    let server = start(&root);
    let account: Value =
        serde_json::from_str(&admin(&root, "account create --agent-name a --credits 2 --json")).unwrap();
    let key = account["api_key"].as_str().unwrap().to_owned();
    let _ = server.client_with(&key).get("/mpp/ethPrice").expect(200);
    let left = balance(&server, &key);
    assert_ne!(left, "2");
    assert_eq!(access(&root, "/var/lib/metering/metering.db"), "600 metering:metering");
    drop(server);

    // An unchanged configuration file is replaced, and stays private.
    install(&root, &later(folder.path(), 2));
    assert!(root.read(CONFIGURATION).ends_with("# New in version 2\n"));
    assert_eq!(access(&root, CONFIGURATION), "640 root:metering");
    // A changed one is kept, with the new one next to it.
    root.run("root", &format!("sed -i 's/^#name = \"Metering\"/name = \"Acme\"/' {CONFIGURATION}"));
    // As its operator would, with the systemd of this machine.
    run(Command::new("systemctl").arg("--root").arg(root.path("/")).args(["disable", "metering-server.service"]));
    assert!(!root.path(ENABLED).is_symlink());
    install(&root, &later(folder.path(), 3));
    assert!(root.read(CONFIGURATION).contains("name = \"Acme\""));
    assert!(root.read(&format!("{CONFIGURATION}.dpkg-dist")).ends_with("# New in version 3\n"));
    assert_eq!(access(&root, CONFIGURATION), "640 root:metering");
    assert!(!root.path(ENABLED).is_symlink(), "an upgrade enabled a service that was disabled");
    let server = start(&root);
    assert!(server.client().get("/metering").expect(200).text().contains("Acme"));
    assert_eq!(balance(&server, &key), left);
    drop(server);
    assert!(admin(&root, "verify").contains("Everything adds up exactly"));

    root.run("root", "dpkg --remove metering");
    assert!(!root.path("/usr/bin/metering").exists() && !root.path(UNIT).exists());
    assert!(root.path(CONFIGURATION).exists() && root.path("/var/lib/metering/metering.db").exists());

    root.run("root", "echo secret > /etc/metering/credentials/gas-key");
    let purged = root.run("root", "dpkg --purge metering 2>&1");
    assert!(!root.path(CONFIGURATION).exists());
    assert!(purged.contains("/var/lib/metering is kept") && purged.contains("credentials is kept"), "{purged}");
    assert!(
        root.path("/var/lib/metering/metering.db").exists() && root.path("/etc/metering/credentials/gas-key").exists()
    );
}

#[test]
fn purge_of_an_unused_package_leaves_nothing() {
    metering_tests::skip_if!(skips());
    let root = DebianRoot::new();
    let files = |root: &DebianRoot| root.run("root", "find /etc /usr /var/lib -xdev | grep metering || true");
    install(&root, package());
    assert!(files(&root).contains("/usr/share/man/man1/metering-admin.1.gz"));
    install(&root, package());
    assert_eq!(access(&root, CONFIGURATION), "640 root:metering");
    let owner = std::fs::metadata(root.path("/var/lib/metering")).unwrap().uid();
    root.run("root", "dpkg --purge metering");
    assert_eq!(files(&root), "");
    assert!(root.read("/etc/passwd").contains(&format!("metering:x:{owner}:")), "the user stays: files may be its own");
}

#[test]
fn unit_is_valid_and_hardened() {
    metering_tests::skip_if!(skips());
    let root = DebianRoot::new();
    install(&root, package());
    // Units that ours refers to.
    run(Command::new("cp").args(["-r", "/usr/lib/systemd/system"]).arg(root.path("/usr/lib/systemd")));
    let inside = format!("--root={}", root.path("/").display());
    let analyze = || {
        let mut command = Command::new("systemd-analyze");
        command.arg(&inside).arg("--man=no");
        command
    };
    assert_eq!(run(analyze().args(["verify", "metering-server.service"])), "");
    // Exposure, from 0 to 100, may be 12. Only the network and the database's socket remain.
    run(analyze().args(["security", "--offline=true", "--threshold=12", "metering-server.service"]));
    // The drop-in that shows credentials is valid too, and its secrets arrive where the configuration expects them.
    let drop_in = "/etc/systemd/system/metering-server.service.d";
    root.run("root", &format!("mkdir -p {drop_in} && cp /usr/share/doc/metering/examples/credentials.conf {drop_in}"));
    assert_eq!(run(analyze().args(["verify", "metering-server.service"])), "");
    let loads = root.read(UNIT);
    assert!(loads.contains("LoadCredential=metering:/etc/metering/credentials\n"));
    for name in ["gas-key", "mpp-secret", "smtp-password", "webhook-secret", "tls-key"] {
        assert!(root.read(&format!("{drop_in}/credentials.conf")).contains(&format!("%d/metering_{name}\n")), "{name}");
        let path = format!("/run/credentials/metering-server.service/metering_{name}");
        assert!(root.read(CONFIGURATION).contains(&path), "{path}");
    }
}

#[test]
fn unit_of_the_continuous_backup_is_valid_and_hardened() {
    metering_tests::skip_if!(skips() || metering_tests::litestream::is_skipped());
    const EXAMPLES: &str = "/usr/share/doc/metering/examples/litestream";
    const LITESTREAM: &str = "/usr/bin/litestream";
    let root = DebianRoot::new();
    install(&root, package());
    run(Command::new("cp").args(["-r", "/usr/lib/systemd/system"]).arg(root.path("/usr/lib/systemd")));
    std::fs::copy(program("litestream-venv", "litestream"), root.path(LITESTREAM)).unwrap();
    // As operating.md says.
    let server = "/etc/systemd/system/metering-server.service.d";
    let lines = format!(
        "install -d -m 0700 -o metering -g metering /var/backups/metering; cd {EXAMPLES}
         install -m 0640 -g metering litestream.yml /etc/metering/litestream.yml
         install -m 0644 metering-litestream.service /etc/systemd/system/
         install -D -m 0644 existing-database.conf {server}/existing-database.conf"
    );
    root.run("root", &lines);
    let inside = format!("--root={}", root.path("/").display());
    let analyze = |args: &[&str]| run(Command::new("systemd-analyze").args([&inside, "--man=no"]).args(args));
    assert_eq!(analyze(&["verify", "metering-litestream.service", "metering-server.service"]), "");
    let _ = analyze(&["security", "--offline=true", "--threshold=12", "metering-litestream.service"]);
    // The user can read the configuration, and the paths in it are those of the package.
    let databases = root.run("metering", "litestream databases -config /etc/metering/litestream.yml");
    assert!(databases.contains("/var/lib/metering/metering.db"), "{databases}");
}

#[test]
fn commands_have_manual_pages_and_completions() {
    metering_tests::skip_if!(skips());
    let root = DebianRoot::new();
    install(&root, package());
    let page = |name: &str| root.run("root", &format!("zcat /usr/share/man/{name}.gz"));
    let pages = [
        ("man1/metering.1", "metering\\-admin(1)"),
        ("man1/metering-admin-account-create.1", "\\-\\-agent\\-name"),
        ("man8/metering-server.8", "\\-\\-print\\-config"),
    ];
    for (name, text) in pages {
        assert!(page(name).contains(text), "{name} lacks {text}: {}", page(name));
    }
    for (program, word, expected) in [
        ("metering", "adm", "admin"),
        ("metering", "cat", "catch-up"),
        ("metering-server", "--print", "--print-config"),
    ] {
        let line = format!(
            ". /usr/share/bash-completion/completions/{program}; COMP_WORDS=({program} {word}); COMP_CWORD=1; \
             \"$(complete -p {program} | grep -o '_[^ ]*' | head -1)\" {program} {word} {program}; echo \"${{COMPREPLY[*]}}\""
        );
        let completed = run(root.command("root", "bash").args(["-c", &line]));
        assert!(completed.split_whitespace().any(|word| word == expected), "{program} {word}: {completed}");
    }
}
