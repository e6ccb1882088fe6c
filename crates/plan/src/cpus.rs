//! The CPUs that were asked for: a pair for each thread of the two ends. Pure.
//!
//! In a record one pair is an object and several are a list, so that a plan of one thread is
//! written as it was before there were several.

use super::CpuPair;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// As they stand in a record.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    One(CpuPair),
    Each(Vec<CpuPair>),
}

/// Writes no pair as `null`, one as itself, more as a list.
pub fn serialize<S: Serializer>(cpus: &[CpuPair], serializer: S) -> Result<S::Ok, S::Error> {
    match cpus {
        [] => serializer.serialize_none(),
        [one] => one.serialize(serializer),
        several => several.serialize(serializer),
    }
}

/// Reads all three.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CpuPair>, D::Error> {
    Ok(match Option::<Written>::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Written::One(pair)) => vec![pair],
        Some(Written::Each(pairs)) => pairs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Holder {
        #[serde(with = "super")]
        cpus: Vec<CpuPair>,
    }

    #[test]
    fn one_pair_is_written_as_itself_and_more_as_a_list() {
        let pair = |client| CpuPair { client, server: client + 1 };
        for (cpus, text) in [
            (vec![], r#"{"cpus":null}"#),
            (vec![pair(2)], r#"{"cpus":{"client":2,"server":3}}"#),
            (
                vec![pair(2), pair(4)],
                r#"{"cpus":[{"client":2,"server":3},{"client":4,"server":5}]}"#,
            ),
        ] {
            let holder = Holder { cpus };
            assert_eq!(serde_json::to_string(&holder).unwrap(), text);
            assert_eq!(serde_json::from_str::<Holder>(text).unwrap(), holder);
        }
    }
}
