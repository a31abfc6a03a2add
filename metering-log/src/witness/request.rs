//! The body of `POST add-checkpoint`: the last size that the witness cosigned, the proof from there, and the new
//! checkpoint.

use std::fmt;
use std::str::FromStr;

use crate::checkpoint::SignedCheckpoint;
use crate::decimal;
use crate::tree::TreeHash;

/// The maximum number of hashes in a proof.
pub const MAX_PROOF_HASHES: usize = 63;

/// A new checkpoint for a witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// The size that the witness cosigned last; 0 if none.
    pub old_size: u64,
    /// The consistency proof from there; empty if `old_size` is 0.
    pub proof: Vec<TreeHash>,
    /// The checkpoint, signed by its log.
    pub checkpoint: SignedCheckpoint,
}

/// The body is not a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a line 'old SIZE', at most {MAX_PROOF_HASHES} lines with a hash, an empty line and a checkpoint")]
pub struct MalformedAddCheckpoint;

impl FromStr for AddCheckpoint {
    type Err = MalformedAddCheckpoint;

    fn from_str(body: &str) -> Result<Self, MalformedAddCheckpoint> {
        let (head, checkpoint) = body.split_once("\n\n").ok_or(MalformedAddCheckpoint)?;
        let mut lines = head.split('\n');
        let old_size = lines.next().and_then(|line| line.strip_prefix("old ")).and_then(decimal::parse);
        let old_size = old_size.ok_or(MalformedAddCheckpoint)?;
        let proof: Result<Vec<TreeHash>, _> = lines.take(MAX_PROOF_HASHES + 1).map(str::parse).collect();
        let proof = proof.ok().filter(|proof| proof.len() <= MAX_PROOF_HASHES).ok_or(MalformedAddCheckpoint)?;
        Ok(Self { old_size, proof, checkpoint: checkpoint.parse().map_err(|_| MalformedAddCheckpoint)? })
    }
}

impl fmt::Display for AddCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old_size)?;
        self.proof.iter().try_for_each(|hash| writeln!(f, "{hash}"))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of `tlog-witness`.
    const EXAMPLE: &str = "old 20852014\n\
        PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n\
        jrJZDmY8Y7SyJE0MWLpLozkIVMSMZcD5kvuKxPC3swk=\n\
        5+pKlUdi2LeF/BcMHBn+Ku6yhPGNCswZZD1X/6QgPd8=\n\
        /6WVhPs2CwSsb5rYBH5cjHV/wSmA79abXAwhXw3Kj/0=\n\n\
        example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
        — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+\
        xeMcTOAYQ8=\n\
        — example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V6267UEjw6QUXTS5Rovnzv++\
        qbSzm9Q=\n";

    #[test]
    fn the_example_of_the_text_round_trips() {
        let request: AddCheckpoint = EXAMPLE.parse().unwrap();
        assert_eq!((request.old_size, request.proof.len()), (20_852_014, 4));
        assert_eq!(request.checkpoint.checkpoint().size(), 20_852_163);
        assert_eq!(request.checkpoint.note().signatures().len(), 2);
        assert_eq!(request.to_string(), EXAMPLE);
    }

    #[test]
    fn other_bodies_are_refused() {
        let proof_line = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=\n";
        for body in [
            String::new(),
            "old 0\n".to_owned(),
            "old 0\n\n".to_owned(),
            EXAMPLE.replace("old ", ""),
            EXAMPLE.replace("old ", "old  "),
            EXAMPLE.replace("old 2", "old 02"),
            EXAMPLE.replace("old 20852014", "old 18446744073709551616"),
            EXAMPLE.replace(proof_line, "PlRN\n"),
            EXAMPLE.replace(proof_line, &proof_line.repeat(61)),
            EXAMPLE.replacen("\n\n", "\n", 1),
            EXAMPLE.replace('\n', "\r\n"),
            EXAMPLE.trim_end().to_owned(),
        ] {
            assert_eq!(body.parse::<AddCheckpoint>(), Err(MalformedAddCheckpoint), "{body}");
        }
        assert!(EXAMPLE.replace(proof_line, &proof_line.repeat(60)).parse::<AddCheckpoint>().is_ok());
    }
}
