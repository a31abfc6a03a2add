//! Reads shell scripts of documents: just enough of the grammar to find the commands with their arguments, and the
//! files that here-documents write.

use std::iter::Peekable;
use std::str::Chars;

/// The prompts before the commands of a session, whose other lines are output.
const PROMPT: &str = "$ ";

/// The commands of a code block.
#[derive(Debug, Default)]
pub struct Script {
    /// Each is a list of words: without redirections, and with variables not expanded.
    pub commands: Vec<Vec<String>>,
    /// The files that here-documents write: name and content.
    pub files: Vec<(String, String)>,
}

/// Whether a text shows what was typed, with its output.
pub(super) fn is_session(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(PROMPT))
}

impl Script {
    /// Reads a script, or the commands of a session.
    #[must_use]
    pub fn read(text: &str) -> Self {
        let (is_session, mut read, mut pending) = (is_session(text), Self::default(), String::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let continues = pending.ends_with("\\\n");
            let line = match line.strip_prefix(PROMPT) {
                Some(typed) if is_session => typed,
                None if is_session && !continues => continue,
                _ => line,
            };
            // A quote that a session leaves open hides no later command.
            if is_session && !continues {
                read.commands.extend(commands(&std::mem::take(&mut pending)));
            }
            let (command, end) = line.split_once("<<").map_or((line, None), |(command, end)| (command, Some(end)));
            pending.push_str(command);
            pending.push('\n');
            if let Some(end) = end {
                let end = end.trim_matches('\'');
                let content: Vec<_> = lines.by_ref().take_while(|line| *line != end).collect();
                let name = command.rsplit_once('>').map(|(_, name)| name.trim().to_owned());
                read.files.extend(name.map(|name| (name, content.join("\n"))));
            }
        }
        read.commands.extend(commands(&pending));
        read
    }
}

/// Splits a script into commands.
#[must_use]
pub fn commands(script: &str) -> Vec<Vec<String>> {
    let (mut found, mut words, mut word, mut is_redirection) = (vec![], vec![], None::<String>, false);
    let mut characters = script.chars().peekable();
    loop {
        let character = characters.next();
        match character {
            Some('\'') => {
                word.get_or_insert_default().extend(characters.by_ref().take_while(|quoted| *quoted != '\''));
                continue;
            }
            Some('"') => {
                double_quoted(&mut characters, word.get_or_insert_default());
                continue;
            }
            Some('\\') => {
                if let Some(escaped) = characters.next().filter(|escaped| *escaped != '\n') {
                    word.get_or_insert_default().push(escaped);
                }
                continue;
            }
            Some('#') if word.is_none() => {
                while characters.next_if(|comment| *comment != '\n').is_some() {}
                continue;
            }
            Some('<' | '>') => {
                // `2>` has the number of a file, not a word.
                word = word.filter(|word| !word.bytes().all(|byte| byte.is_ascii_digit()));
            }
            Some(' ' | '\t' | '\n' | '|' | ';' | '&' | '(' | ')') | None => {}
            Some(other) => {
                word.get_or_insert_default().push(other);
                continue;
            }
        }
        // A word ends here. One after a redirection is a file's name.
        if let Some(word) = word.take()
            && !std::mem::take(&mut is_redirection)
        {
            words.push(word);
        }
        match character {
            Some('<' | '>') => is_redirection = true,
            Some(' ' | '\t') => {}
            _ => {
                is_redirection = false;
                found.extend(Some(std::mem::take(&mut words)).filter(|words| !words.is_empty()));
            }
        }
        if character.is_none() {
            return found;
        }
    }
}

fn double_quoted(characters: &mut Peekable<Chars<'_>>, word: &mut String) {
    while let Some(character) = characters.next() {
        match character {
            '"' => return,
            '\\' => word.push(characters.next_if(|escaped| "\"\\$`".contains(*escaped)).unwrap_or('\\')),
            other => word.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_split_as_a_shell_does() {
        let table: [(&str, &[&[&str]]); 7] = [
            ("a 'b c' \"d \\\"e\\\"\" f\\ g # h", &[&["a", "b c", "d \"e\"", "f g"]]),
            ("a b \\\n  c\nd", &[&["a", "b", "c"], &["d"]]),
            ("a | b & c; d && e", &[&["a"], &["b"], &["c"], &["d"], &["e"]]),
            ("a < b 2> c > d e", &[&["a", "e"]]),
            ("A=$(a --b c)", &[&["A=$"], &["a", "--b", "c"]]),
            ("$ a '{\nno\n$ b \\\n c\nno", &[&["a", "{\n"], &["b", "c"]]),
            ("$ cat > a.toml <<'END'\n'\nEND\n$ b", &[&["cat"], &["b"]]),
        ];
        for (script, expected) in table {
            assert_eq!(Script::read(script).commands, expected, "{script}");
        }
        let files = Script::read("cat > a.toml <<'END'\n[a]\n\nb = 1\nEND\nc").files;
        assert_eq!(files, [("a.toml".to_owned(), "[a]\n\nb = 1".to_owned())]);
    }
}
