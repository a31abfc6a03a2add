//! Compiles the snippets of `docs/embedding.md`, pasted one after the other into a new project with the crates that the
//! page lists.

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/embedding.md");

/// The code blocks in a language, in order.
fn blocks(language: &str) -> Vec<String> {
    let opening = format!("```{language}");
    let (mut blocks, mut block) = (Vec::new(), None::<String>);
    for line in PAGE.lines() {
        match &mut block {
            None if line == opening => block = Some(String::new()),
            Some(text) if line == "```" => {
                blocks.push(std::mem::take(text));
                block = None;
            }
            Some(text) => text.extend([line, "\n"]),
            None => {}
        }
    }
    blocks
}

#[test]
fn embedding_guide_snippets_compile_in_order() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let project = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = project.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let crates = blocks("toml").concat().replace("../metering/", &format!("{}/", workspace.display()));
    write("Cargo.toml", &format!("[package]\nname = \"embedding\"\nedition = \"2024\"\n\n[workspace]\n\n{crates}"));
    // The same versions as in the workspace, so that nothing needs to be downloaded.
    write("Cargo.lock", &fs::read_to_string(workspace.join("Cargo.lock")).unwrap());
    let (own_files, pasted): (Vec<_>, Vec<_>) = blocks("rust").into_iter().partition(|block| block.starts_with("// "));
    assert_eq!((own_files.len(), pasted.len()), (2, 12), "every block was found");
    write("src/lib.rs", &pasted.join("\n"));
    for block in &own_files {
        let name = block.lines().next().and_then(|line| line.strip_prefix("// ")).unwrap();
        write(name, block);
    }
    let checked = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--all-targets", "--quiet"])
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("embedding"))
        .env("RUSTFLAGS", "-D warnings")
        .current_dir(project.path())
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
