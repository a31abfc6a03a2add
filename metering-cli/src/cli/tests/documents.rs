//! The documents show commands that parse, and name every command.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;
use metering_config::server::Arguments;
use metering_tests::documents::{documents, shell};

use super::{Cli, all_commands};

/// Placeholders, with an example of each.
const FILLED_IN: [(&str, &str); 10] = [
    ("$ORG", "org_0123456789abcdefghij"),
    ("ORG", "org_0123456789abcdefghij"),
    ("org_...", "org_0123456789abcdefghij"),
    ("KEY", "key_0123456789abcdef0123"),
    ("key_...", "key_0123456789abcdef0123"),
    ("req_...", "req_0123456789abcdef0123456789abcdef"),
    ("we_...", "we_0123456789abcdef0123456789abcdef"),
    ("mem_...", "mem_0123456789abcdef0123456789abcdef"),
    ("0x...", "0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
    ("$LOG_KEY", "example.com/log+9be5d3c6+AYqI4910CfGV/VLbLTy6XXLKZwm/HZQSG/N0iAG0D29c"),
];

/// Options of other programs, and of the benchmark and the chaos campaigns.
const OTHER_OPTIONS: [&str; 10] =
    ["--cfg", "--complete", "--help", "--jq", "--list", "--plant", "--seconds", "--seed", "--time", "--version"];

/// The command line of one of our programs: without variables before it, and without `sudo -u metering` and the like.
fn of_ours(words: Vec<String>) -> Option<Vec<String>> {
    let is_assignment = |word: &String| word.split_once('=').is_some_and(|(name, _)| name.starts_with("METERING_"));
    let changes_user = |pair: &[String]| matches!(pair[0].as_str(), "-u" | "exec") && pair[1] == "metering";
    let start = words.windows(2).position(changes_user).map_or(0, |user| user + 2);
    let words: Vec<_> = words.into_iter().skip(start).skip_while(|word| is_assignment(word) || word == "--").collect();
    matches!(words.first()?.as_str(), "metering" | "metering-server").then_some(words)
}

/// Parses command lines with the definitions of the programs.
struct Programs {
    client: clap::Command,
    server: clap::Command,
}

impl Programs {
    /// Why a command line is invalid.
    fn problem(&mut self, words: &[String]) -> Option<clap::Error> {
        let filled_in =
            |word: &String| FILLED_IN.iter().find(|(open, _)| open == word).map(|(_, value)| (*value).to_owned());
        let program = if words[0] == "metering" { &mut self.client } else { &mut self.server };
        let parsed = program.try_get_matches_from_mut(words.iter().map(|word| filled_in(word).unwrap_or(word.clone())));
        parsed.err().filter(|error| !matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion))
    }

    /// The words that lead to the command of a command line of `metering`.
    fn command(&self, words: &[String]) -> String {
        let (mut command, mut path) = (&self.client, vec!["metering"]);
        for word in words {
            if let Some(below) = command.find_subcommand(word) {
                command = below;
                path.push(below.get_name());
            }
        }
        path.join(" ")
    }
}

/// The options that a text names.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| !c.is_ascii_lowercase() && c != '-';
    text.match_indices("--").map(move |(start, _)| text[start..].split(is_end).next().unwrap_or_default())
}

#[test]
fn every_option_is_in_a_document_and_those_in_running_text_exist() {
    let defined = |command: &clap::Command| {
        let options = command.get_arguments().filter_map(|option| Some(format!("--{}", option.get_long()?)));
        options.collect::<BTreeSet<_>>()
    };
    let all = all_commands().into_iter().map(|(_, command)| command).chain([Arguments::command()]);
    let all: BTreeSet<_> = all.flat_map(|command| defined(&command)).collect();
    let (mut named, mut wrong) = (BTreeSet::new(), Vec::new());
    for (file, document) in documents().iter().filter(|(file, _)| file.as_path() != Path::new("CHANGELOG.md")) {
        let blocks = document.code_blocks.iter().map(|block| &block.text);
        named.extend(blocks.flat_map(|text| options(text)).map(str::to_owned));
        for code in document.code_spans.iter().map(|span| &span.code) {
            named.extend(options(code).map(str::to_owned));
            let option =
                options(code).next().filter(|option| code.starts_with("--") && !OTHER_OPTIONS.contains(option));
            wrong.extend(option.filter(|option| !all.contains(*option)).map(|_| format!("{}: {code}", file.display())));
        }
    }
    assert!(wrong.is_empty(), "these options do not exist: {}", wrong.join("\n"));
    let missing: Vec<_> = all.difference(&named).collect();
    assert!(missing.is_empty(), "no document names {missing:?}");
}

#[test]
fn commands_in_documents_parse_and_every_command_is_in_one() {
    let mut programs = Programs { client: Cli::command(), server: Arguments::command() };
    let (mut named, mut wrong, mut shown) = (BTreeSet::new(), Vec::new(), 0);
    // The changelog may name what existed only in earlier versions.
    for (file, document) in documents().iter().filter(|(file, _)| file.as_path() != Path::new("CHANGELOG.md")) {
        let scripts = document.code_blocks.iter().filter_map(|block| block.script());
        let blocks = scripts.flat_map(|script| script.commands).filter_map(of_ours).map(|words| (words, true));
        // Running text names commands without their arguments.
        let spans = document.code_spans.iter().flat_map(|span| shell::commands(&span.code));
        let spans = spans.filter_map(of_ours).map(|words| (words, false));
        for (words, is_whole) in blocks.chain(spans) {
            shown += usize::from(is_whole);
            named.insert(programs.command(&words));
            let is_unknown = |kind| matches!(kind, ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
            if let Some(error) = programs.problem(&words).filter(|error| is_whole || is_unknown(error.kind())) {
                wrong.push(format!("{}: {}: {error}", file.display(), words.join(" ")));
            }
        }
    }
    let all = all_commands().into_iter().filter(|(_, command)| !command.has_subcommands());
    wrong
        .extend(all.filter(|(words, _)| !named.contains(words)).map(|(words, _)| format!("no document names {words}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(shown > 150, "{shown}");
}
