//! A server in front of LiteLLM, and the clients that call it.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use metering_core::Catalogue;
use metering_tests::litellm::{LiteLlm, MASTER_KEY, folder};
use metering_tests::server::{Server, ServerSetup};
use metering_tests::site::Site;
use metering_tests::worker;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::llm::scene::shipped;

/// The tokens of the prompt that the clients send.
pub(super) const PROMPT_TOKENS: u64 = 4;
/// The tokens that the models `short` and `slow` respond with.
pub(super) const COMPLETION_TOKENS: u64 = 20;

/// The official clients.
#[derive(Debug, Clone, Copy)]
pub(super) enum Language {
    Python,
    TypeScript,
}

pub(super) const LANGUAGES: [Language; 2] = [Language::Python, Language::TypeScript];

/// A server that sells `POST /v1/chat/completions` with all models of `tests/llm/litellm.yaml`, and the models `short`
/// and `broken` at separate routes, all at this price. Bodies are declared as in the shipped catalogue.
pub(super) fn setup(site: &Site, price: &Value) -> ServerSetup {
    // With its presets written out.
    let shipped = Catalogue::from_json(&std::fs::read_to_string(shipped().join("routes.json")).unwrap()).unwrap();
    let shipped: Value = serde_json::from_str(shipped.json()).unwrap();
    let chat = shipped["endpoints"].as_array().unwrap().iter().find(|route| route["path"] == CHAT).unwrap();
    let route = |path: String| {
        let mut request = chat["request"].clone();
        // It names a model that is not sold here.
        request.as_object_mut().unwrap().remove("example");
        match path == CHAT {
            true => request["schema"]["properties"]["model"] = json!({"enum": MODELS}),
            // The path names the model.
            false => {
                request["schema"]["required"] = json!(["messages"]);
                request["schema"]["properties"].as_object_mut().unwrap().remove("model");
            }
        }
        json!({"path": path, "method": "POST", "metered": true, "sse": true, "price": price, "request": request})
    };
    let models = ["short", "broken"].map(|model| format!("/openai/deployments/{model}/chat/completions"));
    let routes: Vec<_> = models.into_iter().chain([CHAT.to_owned()]).map(route).collect();
    let catalogue = json!({"market": "LLM", "version": 1, "endpoints": routes});
    let catalogue = site.write("catalogue.json", &catalogue.to_string());
    in_front_of_litellm(site).args(["--catalogue".as_ref(), catalogue.as_os_str()])
}

const CHAT: &str = "/v1/chat/completions";
const MODELS: [&str; 5] = ["mock", "short", "slow", "long", "broken"];

/// A server that sends LiteLLM its key.
pub(super) fn in_front_of_litellm(site: &Site) -> ServerSetup {
    // The first request takes LiteLLM longer, and all requests do while other tests use all cores.
    let setup = site.server().set("METERING_GATEWAY__UPSTREAM_TIMEOUT", "2m");
    let key = site.write("litellm-key", MASTER_KEY);
    setup
        .args(["--upstream", &LiteLlm::shared().url()])
        .set("METERING_GATEWAY__UPSTREAM_HEADERS__AUTHORIZATION__FILE", &key.display().to_string())
        .set("METERING_GATEWAY__UPSTREAM_HEADERS__AUTHORIZATION__PREFIX", "Bearer ")
}

/// The text of a whole response of this many tokens.
pub(super) fn text(tokens: u64) -> String {
    (0..tokens).map(|number| number.to_string()).collect::<Vec<_>>().join(" ")
}

impl Language {
    /// Runs a scenario of `tests/llm/use.py` or `use.ts`, and returns the document that it responds with.
    #[track_caller]
    pub(super) fn run(self, server: &Server, key: &str, model: &str, scenario: &[&str]) -> Value {
        self.run_script("use", server, key, &[&[model], scenario].concat())
    }

    /// Runs a script of `tests/llm` with the server's URL, the key and more arguments, and returns its response.
    #[track_caller]
    pub(super) fn run_script(self, script: &str, server: &Server, key: &str, arguments: &[&str]) -> Value {
        let mut command = self.command(script);
        // A proxy or key in the environment would change where requests go.
        for variable in ENVIRONMENT {
            command.env_remove(variable);
        }
        let url = format!("http://{}", server.address());
        let arguments = [&[&*url, key], arguments].concat();
        let result = worker::ask(&mut command, &json!(arguments));
        result.unwrap_or_else(|error| panic!("{self:?} {script} {arguments:?}: {error}"))
    }

    fn command(self, script: &str) -> Command {
        match self {
            Self::Python => worker::python("clients-venv", &folder().join(format!("{script}.py"))),
            Self::TypeScript => {
                let mut command = Command::new("node");
                command.arg(compiled().join(format!("{script}.js")));
                command
            }
        }
    }
}

/// Variables that change where the clients send requests, or with which key.
const ENVIRONMENT: [&str; 14] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "GOOGLE_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_GENAI_USE_VERTEXAI",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

/// The TypeScript scripts, compiled once for all tests of this process.
fn compiled() -> &'static Path {
    static COMPILED: OnceLock<TempDir> = OnceLock::new();
    COMPILED.get_or_init(compile).path()
}

/// The declarations of the SDKs name packages that need not be installed.
const TSCONFIG: &str =
    r#"{"extends": "./base.json", "compilerOptions": {"skipLibCheck": true}, "files": ["use.ts", "sdks.ts"]}"#;

/// Compiles the scripts in a folder from which the packages of `tests/clients` are found.
fn compile() -> TempDir {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
    let packages = clients.join("node_modules");
    let installed = packages.join("openai");
    assert!(installed.is_dir(), "{} is missing: run `npm ci` in tests/clients, or ./test.sh", installed.display());
    let target = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(&packages, target.path().join("node_modules")).unwrap();
    std::fs::write(target.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    for script in ["lines.ts", "use.ts", "sdks.ts"] {
        std::fs::copy(folder().join(script), target.path().join(script)).unwrap();
    }
    std::fs::copy(clients.join("tsconfig.json"), target.path().join("base.json")).unwrap();
    std::fs::write(target.path().join("tsconfig.json"), TSCONFIG).unwrap();
    printed(Command::new("node").current_dir(target.path()).arg(packages.join("typescript/bin/tsc")));
    target
}

/// Runs a program to its end, and returns what it printed.
#[track_caller]
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {printed}\n{errors}");
    printed
}
