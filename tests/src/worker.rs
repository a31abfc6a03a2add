//! Processes that read JSON lines and respond to each with one, for the tests of this process to use in turns: browsers,
//! interpreters and SDKs take seconds to start.
//!
//! A process serves one test at a time, and ends when its input does, so with the tests.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// Idle processes, with their commands.
static IDLE: Mutex<Vec<(String, Worker)>> = Mutex::new(Vec::new());

/// A running process. Dropping it kills it.
struct Worker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    errors: File,
}

/// Sends a line to a process of this command, which is started if none is idle. Returns the `result` of its response.
///
/// # Errors
/// The `error` of its response, or else everything it wrote to standard error. That process gets no other line.
pub fn ask(command: &mut Command, request: &Value) -> Result<Value, String> {
    let name = format!("{command:?}");
    let mut worker = idle(&name).unwrap_or_else(|| Worker::start(command));
    let mut response = worker.respond(request).map_err(|error| format!("{error}: {}", worker.errors()))?;
    if let Some(error) = response["error"].as_str() {
        return Err(error.to_owned());
    }
    IDLE.lock().unwrap_or_else(PoisonError::into_inner).push((name, worker));
    Ok(response["result"].take())
}

/// The Python of a virtual environment with a script that serves lines by `tests/workers/lines.py`.
#[track_caller]
#[must_use]
pub fn python(environment: &str, script: &Path) -> Command {
    let mut command = Command::new(crate::venv::program(environment, "python"));
    // Without a cache of its modules next to our scripts.
    command.arg("-B").arg(script).env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("workers"));
    command
}

fn idle(name: &str) -> Option<Worker> {
    let mut workers = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = workers.iter().position(|(command, _)| command == name)?;
    Some(workers.swap_remove(place).1)
}

impl Worker {
    fn start(command: &mut Command) -> Self {
        let errors = tempfile::tempfile().expect("a temporary file can be created");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(errors.try_clone().expect("a file can be shared"));
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let input = child.stdin.take().expect("its input is piped");
        let output = BufReader::new(child.stdout.take().expect("its output is piped"));
        Self { child, input, output, errors }
    }

    fn respond(&mut self, request: &Value) -> std::io::Result<Value> {
        writeln!(self.input, "{request}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    /// Everything it wrote to standard error, once it has ended.
    fn errors(&mut self) -> String {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut text = String::new();
        let _ = self.errors.rewind();
        let _ = self.errors.read_to_string(&mut text);
        text
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Responds to its n-th line with n, to `"fail"` with an error, and to `"die"` with none.
    const SCRIPT: &str = r#"lines=0
while read -r line; do
  lines=$((lines + 1))
  case $line in
    '"fail"') echo '{"error": "as requested"}' ;;
    '"die"') echo 'no more' >&2; exit 1 ;;
    *) echo "{\"result\": $lines}" ;;
  esac
done"#;

    fn ask_shell(name: &str, request: &Value) -> Result<Value, String> {
        ask(Command::new("sh").args(["-c", SCRIPT, name]), request)
    }

    #[test]
    fn a_process_is_used_again_unless_it_failed() {
        let name = "used-again";
        assert_eq!(ask_shell(name, &json!({"a": "line\n"})), Ok(json!(1)));
        assert_eq!(ask_shell(name, &json!([])), Ok(json!(2)));
        assert_eq!(ask_shell("another", &json!([])), Ok(json!(1)));
        assert_eq!(ask_shell(name, &json!("fail")), Err("as requested".to_owned()));
        assert_eq!(ask_shell(name, &json!([])), Ok(json!(1)));
        let error = ask_shell(name, &json!("die")).unwrap_err();
        assert!(error.contains("no more"), "{error}");
        assert_eq!(ask_shell(name, &json!([])), Ok(json!(1)));
    }
}
