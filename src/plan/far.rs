//! The host on which the server's end runs, where that is another one than this, and how it is
//! reached. Pure.

use serde::{Deserialize, Serialize};

/// Another host, as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Far {
    /// Its name, as ssh is told it.
    pub host: String,
    /// ssh with its own arguments.
    pub ssh: Vec<String>,
    /// Where wiregauge is there; `None`: where its shell finds it.
    pub binary: Option<String>,
    /// Whether this program is copied there, and removed afterwards.
    pub push: bool,
}

/// The words of a command, parted by blanks; quotes of either kind hold blanks together, as they
/// do for a shell, and mean nothing else. `None`: no word, or a quote without its other.
pub fn words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for sign in text.chars() {
        match quote {
            Some(open) if sign == open => quote = None,
            Some(_) => word.get_or_insert_default().push(sign),
            None if sign == '\'' || sign == '"' => {
                quote = Some(sign);
                word.get_or_insert_default();
            }
            None if sign.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(sign),
        }
    }
    words.extend(word);
    (quote.is_none() && !words.is_empty()).then_some(words)
}

/// A path as one word of the far side's shell, whatever signs it has. `~/` at its beginning stays
/// the home directory.
pub fn quoted(path: &str) -> String {
    let (home, rest) = match path.strip_prefix("~/") {
        Some(rest) => ("~/", rest),
        None => ("", path),
    };
    format!("{home}'{}'", rest.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_is_parted_at_blanks_outside_of_quotes() {
        let parted = |text| words(text).map(|words| words.join("|"));
        assert_eq!(parted("ssh"), Some("ssh".into()));
        assert_eq!(parted(" ssh  -F '/a b/c' "), Some("ssh|-F|/a b/c".into()));
        assert_eq!(
            parted("ssh -o \"ProxyCommand=a 'b'\""),
            Some("ssh|-o|ProxyCommand=a 'b'".into())
        );
        assert_eq!(parted("ssh ''"), Some("ssh|".into()));
        assert_eq!((parted(""), parted("  "), parted("ssh 'a")), (None, None, None));
    }

    #[test]
    fn a_path_is_one_word_for_a_shell() {
        assert_eq!(quoted("/opt/a b/$(x)"), "'/opt/a b/$(x)'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("~/bin/w g"), "~/'bin/w g'");
    }

    proptest! {
        #[test]
        fn words_that_are_quoted_are_read_back(
            list in prop::collection::vec("[a-z \"]{0,8}", 1..5),
        ) {
            let typed: Vec<String> = list.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(words(&typed.join(" ")), Some(list));
        }
    }
}
