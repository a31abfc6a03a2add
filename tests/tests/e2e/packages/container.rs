//! The container image, built from its Dockerfile and run, and the compose files.
//!
//! Nothing is downloaded: the base image is the Debian root of the other tests, and the package takes the place of the
//! stage that compiles it.

use std::path::{Path, PathBuf};
use std::process::Command;

use metering_tests::debian_root::DebianRoot;
use metering_tests::postgres::{self, Cluster};
use metering_tests::server::{Server, ServerSetup};
use serde_json::Value;
use tempfile::TempDir;

use super::{package, repository, run, skips};

/// Buildah with separate storage.
struct Buildah(TempDir);

impl Buildah {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn command(&self, command: &str) -> Command {
        let mut buildah = Command::new("buildah");
        buildah.args(["--log-level", "error", "--storage-driver", "vfs"]);
        buildah.arg("--root").arg(self.path("storage")).arg("--runroot").arg(self.path("run")).arg(command);
        if command == "build" {
            buildah.args([
                "--quiet",
                "--isolation",
                "chroot",
                "--network",
                "host",
                "--format",
                "docker",
                "--pull-never",
            ]);
        }
        buildah
    }

    /// The name of a base image like Debian's, without sources to download packages from.
    fn base(&self) -> &'static str {
        let context = self.path("base");
        std::fs::copy(DebianRoot::archive(), context.join("debian.tar")).unwrap();
        let text = "FROM scratch\nADD debian.tar /\nRUN rm -rf /etc/apt/sources.list /etc/apt/sources.list.d\n";
        std::fs::write(context.join("Dockerfile"), text).unwrap();
        run(self.command("build").args(["--tag", "localhost/debian"]).arg(context));
        "localhost/debian"
    }

    /// Builds the image, and returns its configuration and its files.
    fn image(&self) -> (Value, DebianRoot) {
        let built = self.path("built");
        std::fs::copy(package(), built.join("metering.deb")).unwrap();
        let mut build = self.command("build");
        build.args(["--tag", "localhost/metering", "--file"]).arg(repository().join("deploy/container/Dockerfile"));
        build.args(["--build-arg", &format!("DEBIAN_IMAGE={}", self.base())]);
        build.args(["--build-arg", "RUST_IMAGE=localhost/debian", "--build-context"]);
        // The context of the first stage is the repository; what it would make is here already.
        run(build.arg(format!("build={}", built.display())).arg(self.path("empty")));
        let inspected = run(self.command("inspect").args(["--type", "image", "localhost/metering"]));
        let inspected: Value = serde_json::from_str(&inspected).unwrap();
        let container = run(self.command("from").arg("localhost/metering"));
        let folder = run(self.command("mount").arg(container.trim()));
        (inspected["Docker"]["config"].clone(), DebianRoot::at(PathBuf::from(folder.trim())))
    }
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// A program in the image, as its configuration says.
fn command(image: &Value, root: &DebianRoot, program: &[&str]) -> Command {
    let folder = image["WorkingDir"].as_str().unwrap();
    let mut command = root.command("10001", "sh");
    command.args(["-ec", "cd \"$0\"; exec \"$@\"", folder]).args(program);
    for variable in texts(&image["Env"]) {
        let (name, value) = variable.split_once('=').unwrap();
        command.env(name, value);
    }
    command
}

/// Starts the server as the image does. Only its address differs, since the port of the image may be in use here.
fn start(image: &Value, root: &DebianRoot, variables: &[(&str, &str)]) -> Server {
    let mut command = command(image, root, &texts(&image["Entrypoint"]));
    command.envs(variables.iter().copied()).env("METERING_LISTEN", "127.0.0.1:0");
    ServerSetup::of_command(command).start()
}

fn is_healthy(image: &Value, root: &DebianRoot, port: u16) -> bool {
    let check = texts(&image["Healthcheck"]["Test"]);
    assert_eq!(check[0], "CMD");
    let check: Vec<_> = check[1..].iter().map(|word| word.replace(":8787/", &format!(":{port}/"))).collect();
    let check: Vec<_> = check.iter().map(String::as_str).collect();
    command(image, root, &check).output().unwrap().status.success()
}

/// A new key on the server's database, made inside the image.
fn new_key(image: &Value, root: &DebianRoot, variables: &[(&str, &str)]) -> String {
    let line = "metering admin --config /etc/metering/metering.toml account create --agent-name a --credits 2 --json";
    let mut create = command(image, root, &line.split(' ').collect::<Vec<_>>());
    let account: Value = serde_json::from_str(&run(create.envs(variables.iter().copied()))).unwrap();
    account["api_key"].as_str().unwrap().to_owned()
}

#[test]
fn image_is_built_and_serves() {
    metering_tests::skip_if!(skips());
    let buildah = Buildah::new();
    let (image, root) = buildah.image();
    assert_eq!((image["User"].as_str(), image["StopSignal"].as_str()), (Some("10001:10001"), None), "{image}");
    assert!(texts(&image["Env"]).contains(&"METERING_LISTEN=0.0.0.0:8787"), "{image}");
    assert!(image["ExposedPorts"].get("8787/tcp").is_some() && image["Volumes"].get("/var/lib/metering").is_some());
    assert!(root.read("/etc/passwd").contains("metering:x:10001:10001:"));
    assert!(!root.path("/tmp/metering.deb").exists());

    let before = root.run("root", "touch /before && stat -c %a /var/lib/metering");
    assert_eq!(before, "700\n");
    let mut server = start(&image, &root, &[]);
    let port = server.address().port();
    assert!(is_healthy(&image, &root, port));
    let key = new_key(&image, &root, &[]);
    let _ = server.client_with(&key).get("/mpp/ethPrice").expect(200);
    server.terminate();
    assert_eq!(server.wait().code(), Some(0), "{}", server.log());
    assert!(!is_healthy(&image, &root, port), "a server that has stopped is healthy");
    // The compose file makes everything else read-only.
    let written = root.run("root", "find / -xdev -newer /before -type f -not -path '/proc/*' -not -path '/sys/*'");
    let stray: Vec<_> = written.lines().filter(|path| !path.starts_with("/var/lib/metering/")).collect();
    assert!(stray.is_empty() && written.contains("metering.db"), "{written}");

    metering_tests::skip_if!(postgres::is_skipped());
    // As compose.postgres.yaml has it, with the database at another address.
    let password = "0123456789abcdef";
    let configured = compose(&["compose.yaml", "compose.postgres.yaml"], Some(password));
    let configured = configured.split("METERING_DATABASE: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    assert_eq!(configured, format!("postgres://metering:{password}@postgres/metering"));
    let cluster = Cluster::start(&[]);
    cluster.run("CREATE DATABASE metering");
    let url = configured.replace("@postgres/", &format!("@{}/", cluster.address()));
    let variables = [("METERING_DATABASE", url.as_str())];
    let server = start(&image, &root, &variables);
    let key = new_key(&image, &root, &variables);
    let _ = server.client_with(&key).get("/mpp/ethPrice").expect(200);
    assert!(is_healthy(&image, &root, server.address().port()));
}

fn folder() -> PathBuf {
    repository().join("deploy/container")
}

fn compose_command(files: &[&str], password: Option<&str>) -> Command {
    let mut command = Command::new("docker-compose");
    for file in files {
        command.arg("--file").arg(folder().join(file));
    }
    command.arg("config").env_remove("POSTGRES_PASSWORD").env_remove("METERING_PUBLIC_URL");
    command.envs(password.map(|password| ("POSTGRES_PASSWORD", password)));
    command
}

/// The configuration that compose builds from the files.
fn compose(files: &[&str], password: Option<&str>) -> String {
    run(&mut compose_command(files, password))
}

#[test]
fn compose_files_are_valid_and_match_the_image() {
    metering_tests::skip_if!(skips());
    let alone = compose(&["compose.yaml"], None);
    for line in ["127.0.0.1:8787:8787/tcp", "data:/var/lib/metering:rw", "read_only: true", "no-new-privileges:true"] {
        assert!(alone.contains(line), "no {line}: {alone}");
    }
    assert!(!alone.contains("METERING_DATABASE"));
    let context = alone.lines().find_map(|line| line.trim().strip_prefix("context: ")).unwrap();
    assert_eq!(Path::new(context), repository());
    assert!(
        repository().join("deploy/container/Dockerfile").exists()
            && alone.contains("dockerfile: deploy/container/Dockerfile")
    );

    let files = ["compose.yaml", "compose.postgres.yaml"];
    let both = compose(&files, Some("secret"));
    assert!(both.contains("condition: service_healthy") && both.contains("pg_isready"), "{both}");
    let refused = compose_command(&files, None).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("set it to a long random text"), "{message}");
}
