//! The text of a checkpoint: which log it is, how many leaves its tree has, and the tree's root.

use std::fmt;
use std::str::FromStr;

use crate::decimal;
use crate::tree::TreeHash;

/// The head of a log's tree, as the text that is signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    size: u64,
    root: TreeHash,
    extensions: Vec<String>,
}

/// The text is not a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a checkpoint: expected lines with the log's origin, the tree size and the root hash")]
pub struct MalformedCheckpoint;

impl Checkpoint {
    /// The head of this log's tree. The origin should be the log's URL without scheme and trailing slashes.
    ///
    /// # Errors
    /// When the origin is empty or contains control characters.
    pub fn new(origin: impl Into<String>, size: u64, root: TreeHash) -> Result<Self, MalformedCheckpoint> {
        let origin = origin.into();
        if origin.is_empty() || origin.contains(|c: char| c < ' ') {
            return Err(MalformedCheckpoint);
        }
        Ok(Self { origin, size, root, extensions: Vec::new() })
    }

    /// Which log it is.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// How many leaves the tree has.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> TreeHash {
        self.root
    }

    /// Further lines of a log. No verifier checks what they mean, so avoid them.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

impl FromStr for Checkpoint {
    type Err = MalformedCheckpoint;

    fn from_str(text: &str) -> Result<Self, MalformedCheckpoint> {
        let mut lines = text.strip_suffix('\n').ok_or(MalformedCheckpoint)?.split('\n');
        let mut next = || lines.next().ok_or(MalformedCheckpoint);
        let origin = next()?;
        let size = decimal::parse(next()?).ok_or(MalformedCheckpoint)?;
        let root = next()?.parse::<TreeHash>().map_err(|_| MalformedCheckpoint)?;
        let mut read = Self::new(origin, size, root)?;
        read.extensions = lines.map(str::to_owned).collect();
        let unfit = |line: &String| line.is_empty() || line.contains(|c: char| c < ' ');
        if read.extensions.iter().any(unfit) { Err(MalformedCheckpoint) } else { Ok(read) }
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, self.root)?;
        self.extensions.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";

    #[test]
    fn the_example_of_the_text_round_trips() {
        let checkpoint: Checkpoint = EXAMPLE.parse().unwrap();
        assert_eq!(checkpoint.origin(), "example.com/behind-the-sofa");
        assert_eq!(checkpoint.size(), 20_852_163);
        assert_eq!(checkpoint.root().to_string(), "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=");
        assert_eq!(checkpoint.to_string(), EXAMPLE);
        let extended = format!("{EXAMPLE}one\ntwo\n");
        let checkpoint: Checkpoint = extended.parse().unwrap();
        assert_eq!(checkpoint.extensions(), ["one", "two"]);
        assert_eq!(checkpoint.to_string(), extended);
    }

    #[test]
    fn other_texts_are_refused() {
        let lines: Vec<_> = EXAMPLE.lines().collect();
        let [origin, size, root] = lines[..] else { panic!("three lines") };
        for text in [
            String::new(),
            "\n".to_owned(),
            EXAMPLE.trim_end().to_owned(),
            format!("{origin}\n{size}\n"),
            format!("\n{size}\n{root}\n"),
            format!("{origin}\n0{size}\n{root}\n"),
            format!("{origin}\n-1\n{root}\n"),
            format!("{origin}\n18446744073709551616\n{root}\n"),
            format!("{origin}\n{size}\n{}\n", &root[..40]),
            format!("{origin}\n{size}\n{root} \n"),
            format!("{EXAMPLE}\n"),
            format!("{EXAMPLE}one\n\ntwo\n"),
            EXAMPLE.replace('\n', "\r\n"),
        ] {
            assert_eq!(text.parse::<Checkpoint>(), Err(MalformedCheckpoint), "{text:?}");
        }
        assert_eq!(Checkpoint::new("", 0, TreeHash::EMPTY_TREE), Err(MalformedCheckpoint));
        assert_eq!(Checkpoint::new("a\nb", 0, TreeHash::EMPTY_TREE), Err(MalformedCheckpoint));
    }
}
