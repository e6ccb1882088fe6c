//! An entry of a study as the options of its command, so that a word can never mean one thing in a
//! study and another on the command line.

pub use super::place::{hosts, named_hosts};
use super::{common_options, refuse, tables};
use crate::options::{Given, UsageError};
use crate::pattern::Pattern;
use crate::pattern::registry;
use crate::plan::Request;
use crate::plan::study::file::{self, Entry, TYPED, WHOLE, Word, WordValue};
use crate::plan::written::{Misplaced, Written};
use crate::transport::definitions::DEFINITIONS;

/// The request of an entry, or what is wrong with it and at which place of the file.
pub fn request(written: &Written, entry: &Entry) -> Result<Request, Misplaced> {
    let pattern = registry::all().iter().find(|pattern| pattern.name() == entry.command);
    let Some(pattern) = pattern else {
        return Err(written.wrong(&entry.place, format!("'{}' measures nothing", entry.command)));
    };
    let mut given = tables::given_of_pattern(*pattern);
    for word in &entry.words {
        set(&mut given, *pattern, written, word)?;
    }
    let asked = given.check_together().and_then(|()| common_options::request(*pattern, &given));
    asked.map(|(request, _)| request).map_err(|UsageError(sentence)| {
        let named = entry.words.iter().find(|word| names(&sentence, &word.key));
        let place = named.map_or(&entry.place, |word| &word.place);
        written.wrong(place, refuse::one_short_line(&sentence))
    })
}

/// Whether a sentence speaks of an option.
fn names(sentence: &str, key: &str) -> bool {
    let option = format!("--{key}");
    let ends = |c: char| !(c.is_alphanumeric() || c == '-');
    sentence
        .match_indices(&option)
        .any(|(at, _)| sentence[at + option.len()..].chars().next().is_none_or(ends))
}

/// Gives an option the value of a word; nothing for a flag that is switched off.
fn set(
    given: &mut Given,
    pattern: &dyn Pattern,
    written: &Written,
    word: &Word,
) -> Result<(), Misplaced> {
    let key = word.key.as_str();
    let Some(option) = given.definition(key) else {
        let sentence = format!("{} has no option '{key}': use {}", pattern.name(), allowed(given));
        return Err(written.wrong(&word.key_place, sentence));
    };
    let text = match (option.takes_value(), &word.value) {
        (_, WordValue::Switch(true)) => "on",
        (true, WordValue::Switch(false)) => "off",
        (false, WordValue::Switch(false)) => return Ok(()),
        (true, WordValue::Text(text)) => text,
        (false, WordValue::Text(_)) => {
            return Err(
                written.wrong(&word.place, format!("'{key}' is a switch: use true or false"))
            );
        }
    };
    let set = given.set(key, text);
    set.map_err(|wrong| written.wrong(&word.place, refuse::one_short_line(&wrong.0)))
}

/// What an entry may hold, but for the options of the transports.
fn allowed(given: &Given) -> String {
    let own = |word: &&str| {
        let is_setting = DEFINITIONS.iter().any(|setting| setting.name == *word);
        !is_setting && !TYPED.contains(word) && !WHOLE.contains(word) && !file::is_elsewhere(word)
    };
    let words = given.definitions().iter().filter(|option| !option.is_hidden);
    let words: Vec<&str> = words.map(|option| option.name).filter(own).collect();
    format!(
        "series, {}, an option of its transport (`wiregauge help NAME`), and below [all] also {}",
        words.join(", "),
        WHOLE.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Schedule, Wait};
    use crate::transport::TransportKind;
    use crate::units::{Bytes, MessageRate, Span};
    use proptest::prelude::*;

    /// The only entry of a study.
    fn asked(text: &str) -> Result<Request, Misplaced> {
        let text = format!("title = \"t\"\n{text}");
        let study = file::parse(&registry::names(), "a.toml", &text)?;
        request(&study.written, &study.entries[0])
    }

    fn refusal(text: &str) -> String {
        asked(text).unwrap_err().to_string()
    }

    #[test]
    fn words_of_every_kind_are_those_of_the_command_line() {
        let found = asked(
            "[all]\nrounds = 7\nthreshold = \"1ms\"\nwait = \"block\"\n[[oneway]]\nseries = \"s\"\n\
             transport = [\"tcp\", \"unix\"]\nsize = [8, \"64..256*2\"]\ncheck = true\n\
             perturb = false\nnodelay = false\nrate = 10_000\narrivals = \"poisson\"\n\
             wait = \"busy\"\n",
        );
        // An option that only one of the transports knows is refused, as it is when typed.
        assert!(found.unwrap_err().to_string().contains("unix does not support --nodelay"));
        let found = asked(
            "[all]\nrounds = 7\nthreshold = \"1ms\"\nwait = \"block\"\n[[oneway]]\nseries = \"s\"\n\
             transport = [\"tcp\"]\nsize = [8, \"64..256*2\"]\ncheck = true\nperturb = false\n\
             nodelay = false\nrate = 10_000\narrivals = \"poisson\"\nwait = \"busy\"\n",
        )
        .unwrap();
        assert_eq!((found.pattern.name(), found.rounds), ("oneway", Some(7)));
        assert_eq!(found.transports, [TransportKind::Tcp]);
        assert_eq!(found.sizes, [8, 64, 128, 256].map(Bytes));
        assert_eq!((found.check, found.perturb, found.waits), (true, false, vec![Wait::Busy]));
        assert_eq!(
            (found.settings.switch("nodelay"), found.threshold),
            (Some(false), Span(1_000_000))
        );
        assert_eq!(found.schedule, Schedule::Poisson { rate: MessageRate(1e4) });
    }

    #[test]
    fn a_word_that_is_wrong_is_pointed_at() {
        let entry = "[[latency]]\nseries = \"s\"\n";
        for (words, place, says) in [
            ("sise = 8\n", "a.toml:4:1", "latency has no option 'sise': use series, size, "),
            ("size = \"8..\"\n", "a.toml:4:8", "--size: invalid sweep '8..': use A..B"),
            ("transport = \"tpc\"\n", "a.toml:4:13", "unknown value 'tpc': use tcp, "),
            ("check = \"yes\"\n", "a.toml:4:9", "'check' is a switch: use true or false"),
            ("count = 0\n", "a.toml:4:9", "--count: '0' is out of range: use 1 to "),
            ("count = true\n", "a.toml:4:9", "--count: invalid number 'on'"),
            ("rate = 5\n", "a.toml:4:1", "latency has no option 'rate'"),
            ("help = true\n", "a.toml:4:1", "latency has no option 'help'"),
            ("size = 100000\ntransport = \"udp\"\n", "a.toml:4:8", "use 1 to 65507"),
            ("agent = true\n", "a.toml:4:1", "latency has no option 'agent'"),
            ("size = \"--json\"\n", "a.toml:4:8", "--size: "),
            ("transport = [\"tcp\", 1979-01-01]\n", "a.toml:4:21", "'transport' is a datetime"),
        ] {
            let sentence = refusal(&format!("{entry}{words}"));
            assert!(sentence.starts_with(&format!("{place}: ")), "{words}: {sentence}");
            assert!(sentence.contains(says), "{words}: {sentence}");
        }
    }

    #[test]
    fn an_option_is_named_whole() {
        assert!(names("--count 0 is too small", "count"));
        assert!(!names("--count 0 is too small", "co"));
        assert!(!names("--send-buffer: '1'", "send"));
    }

    proptest! {
        #[test]
        fn no_words_panic_or_break_the_line(
            words in prop::collection::vec((
                prop::sample::select(vec![
                    "size", "count", "transport", "wait", "rate", "check", "until", "synthetic",
                    "perturb", "nodelay", "x",
                ]),
                prop_oneof![
                    "\"[a-z0-9.,*+()%-]{0,12}\"",
                    "-?[0-9]{1,20}(\\.[0-9]{1,3})?",
                    "(true|false|\\[[0-9]{1,2}, [0-9]{1,3}\\]|1979-01-01|nan|inf)",
                ]), 0..4),
        ) {
            let line = |(key, value): &(&str, String)| format!("{key} = {value}\n");
            let words: String = words.iter().map(line).collect();
            if let Err(wrong) = asked(&format!("[[oneway]]\nseries = \"s\"\n{words}")) {
                prop_assert!(!wrong.to_string().contains(char::is_control));
            }
        }
    }
}
