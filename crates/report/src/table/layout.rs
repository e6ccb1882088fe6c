//! How a report is laid out as text: for a terminal of some width, or for other programs.

use super::column_names::{self, plain_name};
use super::text::{Text, Tone};
use std::ops::Range;
use std::str::FromStr;
use textwrap::core::{Word, display_width};
use textwrap::{Options, WordSeparator, WordSplitter, WrapAlgorithm};
use wiregauge_plan::written::escaped;

/// A terminal that says it is narrower is laid out as if it had so many characters.
const NARROWEST: usize = 20;

/// The columns of tables that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// On a terminal those that fit, by their rank; all where the text goes to a program.
    #[default]
    Fitting,
    /// All.
    All,
    /// Those with these names, and what says which row it is.
    Named(Vec<String>),
}

impl FromStr for Columns {
    type Err = String;

    fn from_str(text: &str) -> Result<Columns, String> {
        if text == "all" {
            return Ok(Columns::All);
        }
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        names.iter().try_for_each(|name| column_names::check(name))?;
        Ok(Columns::Named(names))
    }
}

fn is_name<S: AsRef<str>>(wanted: &str, names: &[S]) -> bool {
    names.iter().any(|name| plain_name(name.as_ref()) == plain_name(wanted))
}

/// How a report is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Characters of a line at most; `None`: the text goes to a program, and a line is never
    /// broken.
    pub width: Option<usize>,
    /// The columns of tables.
    pub columns: Columns,
    /// Whether everything is told: notes, all warnings, the instrument, the clock and the noise.
    pub verbose: bool,
}

impl Layout {
    /// For a terminal of this width.
    pub fn of_width(width: usize) -> Layout {
        Layout { width: Some(width.max(NARROWEST)), ..Layout::default() }
    }

    /// Whether a column was asked for by one of its names.
    pub(super) fn has_named<S: AsRef<str>>(&self, names: &[S]) -> bool {
        match &self.columns {
            Columns::Named(wanted) => wanted.iter().any(|wanted| is_name(wanted, names)),
            Columns::Fitting | Columns::All => true,
        }
    }

    /// The first name that was asked for and none of these columns has, each with its names.
    pub(super) fn unknown<'a>(&'a self, columns: &[Vec<String>]) -> Option<&'a str> {
        let Columns::Named(wanted) = &self.columns else { return None };
        let is_known = |wanted: &str| columns.iter().any(|names| is_name(wanted, names));
        wanted.iter().map(String::as_str).find(|wanted| !is_known(wanted))
    }

    /// The lines of a sentence, those after the first indented.
    pub(super) fn lines(&self, sentence: &str) -> Vec<String> {
        // Escaped before it is broken: what is printed in its place is longer.
        let sentence = escaped(&sentence.replace('\n', " "));
        let Some(width) = self.width else { return vec![sentence] };
        let indent = sentence.len() - sentence.trim_start().len();
        let (own, further) = (" ".repeat(indent), " ".repeat(indent + 2));
        let options = options(width).initial_indent(&own).subsequent_indent(&further);
        textwrap::wrap(sentence.trim_start(), options).into_iter().map(Into::into).collect()
    }

    /// A sentence on lines of its own. Its first word is emphasised where a colon ends it.
    pub fn sentence(&self, sentence: &str, first: Tone) -> Text {
        let mut text = Text::default();
        for (number, line) in self.lines(sentence).iter().enumerate() {
            let is_word = |end: &usize| number == 0 && !line[..*end].trim_start().contains(' ');
            let word = line.find(": ").filter(is_word);
            let (word, rest) = line.split_at(word.map_or(0, |end| end + 1));
            text.push(first, word);
            text.push(Tone::Plain, rest);
            text.end_line();
        }
        text
    }
}

/// Lines are broken between words alone; a word that is longer than a line is broken too.
fn options<'a>(width: usize) -> Options<'a> {
    Options::new(width)
        .word_separator(WordSeparator::Custom(words))
        .word_splitter(WordSplitter::NoHyphenation)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
}

/// A text in lines of at most so many characters.
pub(super) fn broken(text: &str, width: usize) -> Vec<String> {
    textwrap::wrap(text, options(width)).into_iter().map(Into::into).collect()
}

/// Follow a number on its line.
const UNITS: [&str; 27] = [
    "%", "ns", "us", "ms", "s", "B", "KiB", "MiB", "GiB", "kB", "MB", "GB", "MB/s", "Gb/s", "Mb/s",
    "GB/s", "MiB/s", "GiB/s", "k", "M", "msg/s", "Hz", "MHz", "GHz", "ppm", "ppb", "±",
];

/// The words of a text. A number and its unit are one.
fn words(text: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut before = "";
    let mut begin = 0;
    for word in WordSeparator::AsciiSpace.find_words(text) {
        let end = begin + word.word.len() + word.whitespace.len();
        match ranges.last_mut() {
            Some(last) if are_one(before, word.word) => last.end = end,
            _ => ranges.push(begin..end),
        }
        (before, begin) = (word.word, end);
    }
    Box::new(ranges.into_iter().map(|range| Word::from(&text[range])))
}

/// Whether a word belongs to the one before: a unit to its number, `msg/s` to its `k`.
fn are_one(before: &str, word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ';', ':', ')', '!']);
    let is_number = before.ends_with(|c: char| c.is_ascii_digit() || ")!".contains(c))
        && before
            .trim_start_matches(['(', '±', '-', '+', '≤', '≥', '~'])
            .starts_with(|c: char| c.is_ascii_digit());
    match before {
        "k" | "M" => word == "msg/s",
        "±" => word.starts_with(|c: char| c.is_ascii_digit()),
        "inf" => UNITS.contains(&word),
        _ => is_number && (UNITS.contains(&word) || word.starts_with('±')),
    }
}

/// Characters of the longest word of a text.
pub(super) fn longest_word(text: &str) -> usize {
    words(text).map(|word| width(word.word)).max().unwrap_or(0)
}

/// Characters that a terminal needs for a text.
pub(super) fn width(text: &str) -> usize {
    display_width(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_named_as_their_heads_are() {
        let layout = |text: &str| {
            let columns = text.parse().unwrap_or_default();
            Layout { columns, ..Layout::default() }
        };
        assert!(layout("P99.9,of-rounds").has_named(&["p99.9"]));
        assert!(layout("P99.9,of-rounds").has_named(&["of rounds"]));
        assert!(!layout("P99.9").has_named(&["p99", "p99 us"]));
        assert!(layout("all").has_named(&["p99"]));
    }

    #[test]
    fn a_number_stands_beside_its_error_and_its_unit() {
        let lines = |text: &str| Layout::of_width(20).lines(text);
        let text = "is known only to ±29 %: it differs";
        assert_eq!(lines(text), ["is known only to", "  ±29 %: it differs"]);
        let text = "all of them get 100.0 k msg/s.";
        assert_eq!(lines(text), ["all of them get", "  100.0 k msg/s."]);
        assert_eq!(lines("it takes long 1.70 ±0.20 us or so")[1], "  1.70 ±0.20 us or");
        assert!(!are_one("1,", "s") && !are_one("tcp", "B") && are_one("≤2.5!", "us,"));
        assert_eq!(longest_word("Gb/s 64 KiB"), 6);
    }

    #[test]
    fn what_is_escaped_is_broken_as_it_is_printed() {
        let text = format!("fault: {} and the rest", "\u{1b}[2J".repeat(3));
        for line in Layout::of_width(30).lines(&text) {
            assert!(super::width(&line) <= 30 && !line.contains('\u{1b}'), "{line}");
        }
    }

    #[test]
    fn a_name_that_no_column_has_is_found() {
        let columns = [vec!["p50 us".to_owned(), "p50".to_owned()]];
        let unknown = |text: &str| {
            let columns_asked = text.parse().unwrap_or_default();
            let layout = Layout { columns: columns_asked, ..Layout::default() };
            layout.unknown(&columns).map(str::to_owned)
        };
        assert_eq!(unknown("P50,lost").as_deref(), Some("lost"));
        assert_eq!((unknown("p50-us"), unknown("all")), (None, None));
    }

    proptest! {
        #[test]
        fn sentences_are_wrapped_between_words(
            words in prop::collection::vec("[a-z0-9-]{1,18}", 1..30), width in 20usize..130,
        ) {
            let lines = Layout::of_width(width).lines(&words.join(" "));
            prop_assert!(lines.iter().all(|line| super::width(line) <= width));
            prop_assert!(lines.iter().skip(1).all(|line| line.starts_with("  ")));
            let all = lines.join(" ");
            prop_assert_eq!(all.split_whitespace().collect::<Vec<_>>(), words);
        }
    }
}
