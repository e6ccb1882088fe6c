//! A study as it is written: entries in the words of the command line, graphs, references.
//!
//! What a word means is for the command line's own parser to say (`cli::entry`), so that it can
//! mean nothing else here; what the table around the words means is said here.

use super::{Graph, GraphKind};
use crate::plan::written::{Field, Fields, Misplaced, Place, Text, Written};
use crate::units::Bytes;
use toml::de::DeValue;

/// Most entries, most graphs, and most references of a graph.
const MOST: usize = 200;
/// Longest name of a series, in characters: it stands in tables and legends.
const LONGEST_NAME: usize = 40;
/// Longest title or source, in characters.
const LONGEST_TEXT: usize = 500;
/// What a graph may show of a distribution.
pub const QUANTILES: [f64; 6] = [0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];
/// Words that hold for the whole run, and are typed where it is started.
pub const TYPED: [&str; 14] = [
    "cpus",
    "seed",
    "clock",
    "out",
    "json",
    "to",
    "hosts",
    "hosts-file",
    "all-pairs",
    "at-once",
    "bisection",
    "remote-binary",
    "push",
    "ssh",
];
/// Words of a command that a study has no use for, and what is to be typed instead.
const ELSEWHERE: [(&str, &str); 3] = [
    ("slo", "a study does not search for rates: use wiregauge load --slo 'p99<50us'"),
    ("file", "a study writes no sample files: use wiregauge stream --file out.csv"),
    ("format", "a study writes no sample files: use wiregauge stream --file out.csv"),
];
/// Words that hold for the whole study, and stand below `[all]`.
pub const WHOLE: [&str; 3] = ["rounds", "until", "threshold"];

/// A study that can be read; whether its words make sense is not known yet.
#[derive(Clone, Debug)]
pub struct StudyFile {
    /// Its text.
    pub written: Written,
    /// What it asks.
    pub title: String,
    /// What it reproduces.
    pub source: Option<String>,
    /// What is said where no network interface is named for it.
    pub without_interface: Option<String>,
    /// What is measured, in the order in which it is written.
    pub entries: Vec<Entry>,
    /// What is drawn.
    pub graphs: Vec<GraphAsked>,
}

/// One command's worth of words.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The command's name.
    pub command: &'static str,
    /// The series that its cases belong to.
    pub series: String,
    /// The words of `[all]` that it does not have itself, then its own.
    pub words: Vec<Word>,
    /// Where it stands.
    pub place: Place,
}

/// An option of the command line without its dashes.
#[derive(Clone, Debug)]
pub struct Word {
    /// The option's name.
    pub key: String,
    /// What it is given.
    pub value: WordValue,
    /// Where the name stands.
    pub key_place: Place,
    /// Where the value stands.
    pub place: Place,
}

/// The value of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WordValue {
    /// A text or a number, or a list of them with commas between.
    Text(String),
    /// `true` or `false`.
    Switch(bool),
}

/// A graph as it is written.
#[derive(Clone, Debug)]
pub struct GraphAsked {
    /// The graph, without its references.
    pub graph: Graph,
    /// What is to be drawn beside it.
    pub references: Vec<ReferenceAsked>,
    /// Where its metric stands.
    pub metric_place: Place,
}

/// Which published figures are to be drawn.
#[derive(Clone, Debug)]
pub struct ReferenceAsked {
    /// A shipped file's name, or the path of one.
    pub file: Text,
    /// The table in it.
    pub table: Text,
    /// The column; `link-rate`: that of the link which is found.
    pub column: Text,
    /// The row, where rows have names.
    pub row: Option<Text>,
    /// The series beside which it stands.
    pub beside: Option<Text>,
    /// Where it stands.
    pub place: Place,
}

/// Whether a word of a command is none of a study.
pub fn is_elsewhere(word: &str) -> bool {
    ELSEWHERE.iter().any(|(key, _)| *key == word)
}

/// Reads a study whose entries are of these commands.
pub fn parse(commands: &[&'static str], file: &str, text: &str) -> Result<StudyFile, Misplaced> {
    let written = Written { file: file.into(), text: text.into() };
    let mut fields = written.fields("a study")?;
    let title = short(&written, fields.text("title")?, LONGEST_TEXT)?;
    let source = fields.optional_text("source")?;
    let source = source.map(|text| short(&written, text, LONGEST_TEXT)).transpose()?;
    let said = fields.optional_text("without-interface")?;
    let without_interface = said.map(|text| short(&written, text, LONGEST_TEXT)).transpose()?;
    let all = match fields.table("all", "[all]")? {
        Some(mut table) => words(&written, &mut table)?,
        None => Vec::new(),
    };
    refuse_typed(&written, &all)?;
    let mut entries = Vec::new();
    for &command in commands {
        for table in fields.tables(command, command)? {
            entries.push(entry(command, table, &all)?);
        }
    }
    entries.sort_by_key(|entry| entry.place.start);
    let graphs = fields.tables("graph", "a graph")?;
    fields.done()?;
    if entries.is_empty() || entries.len() > MOST {
        let names: Vec<String> = commands.iter().map(|name| format!("[[{name}]]")).collect();
        let sentence = format!(
            "a study has 1 to {MOST} entries, not {}; write one as {}",
            entries.len(),
            names.join(", ")
        );
        return Err(written.wrong(&(0..0), sentence));
    }
    if graphs.len() > MOST {
        return Err(written.wrong(&(0..0), format!("a study has at most {MOST} graphs")));
    }
    let names = series(&entries);
    let graphs: Result<Vec<GraphAsked>, Misplaced> =
        graphs.into_iter().map(|table| graph(table, &names)).collect();
    let graphs = graphs?;
    Ok(StudyFile { written, title, source, without_interface, entries, graphs })
}

/// The names of the series, each once, in the order in which they are written.
pub fn series(entries: &[Entry]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        if !names.contains(&entry.series) {
            names.push(entry.series.clone());
        }
    }
    names
}

fn entry(command: &'static str, mut table: Fields<'_>, all: &[Word]) -> Result<Entry, Misplaced> {
    let written = table.written;
    let (series, place) = table.text("series")?;
    // `--only` lists series with commas between.
    if series.contains(',') {
        return Err(written.wrong(&place, "the name of a series must not contain a comma"));
    }
    let series = short(written, (series, place), LONGEST_NAME)?;
    let place = table.place.clone();
    let own = words(written, &mut table)?;
    refuse_typed(written, &own)?;
    if let Some(word) = own.iter().find(|word| WHOLE.contains(&word.key.as_str())) {
        let sentence = format!("'{}' applies to the whole study: write it below [all]", word.key);
        return Err(written.wrong(&word.key_place, sentence));
    }
    let inherited = all.iter().filter(|word| own.iter().all(|other| other.key != word.key));
    let words = inherited.cloned().chain(own.iter().cloned()).collect();
    Ok(Entry { command, series, words, place })
}

fn refuse_typed(written: &Written, words: &[Word]) -> Result<(), Misplaced> {
    for word in words {
        if let Some((key, why)) = ELSEWHERE.iter().find(|(key, _)| *key == word.key) {
            return Err(
                written.wrong(&word.key_place, format!("'{key}' is not available here: {why}"))
            );
        }
    }
    match words.iter().find(|word| TYPED.contains(&word.key.as_str())) {
        None => Ok(()),
        Some(word) => {
            let key = &word.key;
            let sentence =
                format!("'{key}' applies to the whole run: use wiregauge run STUDY --{key}");
            Err(written.wrong(&word.key_place, sentence))
        }
    }
}

/// All that is left of a table as words.
fn words(written: &Written, table: &mut Fields<'_>) -> Result<Vec<Word>, Misplaced> {
    let word = |(key, field): (String, Field<'_>)| {
        let (key_place, place) = (field.key_place.clone(), field.place.clone());
        let value = match field.value {
            DeValue::Boolean(on) => WordValue::Switch(on),
            DeValue::Array(_) => {
                let parts = written.list(&key, field)?;
                let parts: Result<Vec<String>, Misplaced> =
                    parts.iter().map(|part| plain(written, &key, part)).collect();
                WordValue::Text(parts?.join(","))
            }
            _ => WordValue::Text(plain(written, &key, &field)?),
        };
        Ok(Word { key, value, key_place, place })
    };
    table.rest().into_iter().map(word).collect()
}

/// A text or a number as it would be typed.
fn plain(written: &Written, key: &str, field: &Field<'_>) -> Result<String, Misplaced> {
    match &field.value {
        DeValue::String(text) => Ok(text.clone().into_owned()),
        DeValue::Integer(number) if number.radix() == 10 => Ok(number.as_str().replace('_', "")),
        DeValue::Float(number) => Ok(number.as_str().replace('_', "")),
        other => {
            let write =
                "a quoted string, a decimal number, true, false or a list of strings and numbers";
            Err(written.kind(&field.place, key, other, write))
        }
    }
}

/// A text that is not empty and not long, on one line.
fn short(
    written: &Written,
    (text, place): (String, Place),
    most: usize,
) -> Result<String, Misplaced> {
    let length = text.chars().count();
    if !(1..=most).contains(&length) || text.chars().any(char::is_control) {
        return Err(written.wrong(&place, format!("write one line of 1 to {most} characters")));
    }
    Ok(text)
}

fn graph(mut table: Fields<'_>, names: &[String]) -> Result<GraphAsked, Misplaced> {
    let written = table.written;
    let title = short(written, table.text("title")?, LONGEST_TEXT)?;
    let kind = written.one_of("kind", table.text("kind")?)?;
    let (metric, metric_place) = table.text("metric")?;
    let spread = |word| written.one_of("spread", word);
    let mut graph = Graph {
        title,
        kind,
        metric,
        also: also(&mut table, kind)?,
        quantile: quantile(&mut table)?,
        spread: table.optional_text("spread")?.map(spread).transpose()?.unwrap_or_default(),
        size: size(&mut table)?,
        series: Vec::new(),
        references: Vec::new(),
        notes: Vec::new(),
    };
    for (name, place) in table.texts("series")? {
        known(written, &name, &place, names)?;
        graph.series.push(name);
    }
    if graph.series.is_empty() {
        graph.series = names.to_vec();
    }
    let references = table.tables("reference", "a reference")?;
    table.done()?;
    if references.len() > MOST {
        return Err(written.wrong(&metric_place, format!("a graph has at most {MOST} references")));
    }
    let references = references.into_iter().map(|table| reference(table, &graph.series));
    let references = references.collect::<Result<_, Misplaced>>()?;
    Ok(GraphAsked { graph, references, metric_place })
}

/// More metrics, where the kind has room for them.
fn also(table: &mut Fields<'_>, kind: GraphKind) -> Result<Vec<String>, Misplaced> {
    let also = table.texts("also")?;
    if let (Some((_, place)), 0 | 2) = (also.first(), kind.axes().len()) {
        let sentence = format!("{} shows one metric: write one graph for each", kind.name());
        return Err(table.written.wrong(place, sentence));
    }
    Ok(also.into_iter().map(|(metric, _)| metric).collect())
}

/// The quantile that is written, or the median.
pub(crate) fn quantile(table: &mut Fields<'_>) -> Result<f64, Misplaced> {
    let Some(field) = table.take("quantile") else { return Ok(0.5) };
    let asked = table.written.as_number("quantile", &field)?;
    let known = QUANTILES.into_iter().find(|p| *p == asked);
    known.ok_or_else(|| {
        let allowed = QUANTILES.map(|p| p.to_string()).join(", ");
        let sentence = format!("unknown quantile {asked}: use {allowed}");
        table.written.wrong(&field.place, sentence)
    })
}

fn size(table: &mut Fields<'_>) -> Result<Option<Bytes>, Misplaced> {
    let Some(field) = table.take("size") else { return Ok(None) };
    let text = plain(table.written, "size", &field)?;
    let size = text.parse::<Bytes>();
    size.map(Some).map_err(|error| table.written.wrong(&field.place, error.to_string()))
}

fn known(written: &Written, name: &str, place: &Place, names: &[String]) -> Result<(), Misplaced> {
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let allowed = names.join(", ");
    Err(written.wrong(place, format!("unknown series '{name}': use {allowed}")))
}

fn reference(mut table: Fields<'_>, series: &[String]) -> Result<ReferenceAsked, Misplaced> {
    let asked = ReferenceAsked {
        file: table.text("file")?,
        table: table.text("table")?,
        column: table.text("column")?,
        row: table.optional_text("row")?,
        beside: table.optional_text("beside")?,
        place: table.place.clone(),
    };
    if let Some((name, place)) = &asked.beside {
        known(table.written, name, place, series)?;
    }
    table.done()?;
    Ok(asked)
}

#[cfg(test)]
mod tests;
