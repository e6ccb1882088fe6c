//! A study as it is written: entries in the words of the command line, graphs, references.
//!
//! What a word means is for the command line's own parser to say (`cli::entry`), so that it can
//! mean nothing else here; what the table around the words means is said here.

use super::parts::{self, ImpactAsked, LONGEST_NAME, PartAsked};
use super::{Graph, GraphKind};
use crate::written::{Field, Fields, Misplaced, Place, Read, Text, Written};
use std::borrow::Cow;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::DeValue;
use wiregauge_base::options::each_once;
use wiregauge_base::units::Bytes;

/// Most entries, most graphs, and most references of a graph.
const MOST: usize = 200;
/// Longest title or source, in characters.
const LONGEST_TEXT: usize = 500;
/// What a graph may show of a distribution.
pub const QUANTILES: [f64; 6] = [0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];
/// Words that hold for the whole run, and are typed where it is started.
#[rustfmt::skip]
pub const TYPED: [&str; 29] = [
    "cpus", "seed", "clock", "out", "json", "to", "hosts", "hosts-file", "all-pairs", "at-once",
    "client-hosts", "bisection", "remote-binary", "push", "ssh", "rank", "ranks", "leader",
    "baseline", "save-baseline", "fail-if", "strict", "junit", "markdown",
    "live", "yes", "columns", "verbose", "color",
];
/// Words of a command that a study has no use for, and what is to be typed instead.
const ELSEWHERE: [(&str, &str); 7] = [
    ("forever", "a study ends by itself: use `wiregauge latency --forever`"),
    (
        "report-every",
        "a study prints no lines of a round: use `wiregauge bandwidth --report-every 1s`",
    ),
    ("causes", "a study looks for no causes: use `wiregauge latency --causes`"),
    ("rails", "a study measures no rails: use `wiregauge bandwidth --to node07 --rails all`"),
    ("slo", "a study does not search for rates: use `wiregauge load --slo 'p99<50us'`"),
    ("file", "a study writes no sample files: use `wiregauge stream --file out.csv`"),
    ("format", "a study writes no sample files: use `wiregauge stream --file out.csv`"),
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
    /// A shell command that runs when the run is over.
    pub restore: Option<String>,
    /// The hosts of its run, where none are named.
    pub hosts: Vec<Text>,
    /// What is measured, in the order in which it is written.
    pub entries: Vec<Entry>,
    /// Series that are compared with themselves beside others.
    pub impacts: Vec<ImpactAsked>,
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
    /// A shell command that runs before each of its rounds.
    pub prepare: Option<String>,
    /// What it has of those that run at the same time.
    pub part: PartAsked,
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

/// Whether an argument of a command is not allowed in a study.
pub fn is_elsewhere(word: &str) -> bool {
    ELSEWHERE.iter().any(|(key, _)| *key == word)
}

/// Reads a study whose entries are of these commands.
pub fn parse(commands: &[&'static str], file: &str, text: &str) -> Result<StudyFile, Misplaced> {
    let written = Written { file: file.into(), text: text.into() };
    let mut fields = written.fields("a study")?;
    let text = |text| written.short(text, LONGEST_TEXT);
    let title = text(fields.get("title")?)?;
    let source = fields.get::<Option<_>>("source")?.map(text).transpose()?;
    let without_interface = fields.get::<Option<_>>("without-interface")?.map(text).transpose()?;
    let restore = fields.get::<Option<_>>("restore")?.map(text).transpose()?;
    let hosts = fields.get("hosts")?;
    let all = fields.get::<Option<_>>("all")?.map_or(Ok(Vec::new()), words)?;
    let mut entries = Vec::new();
    for &command in commands {
        for table in fields.get::<Vec<_>>(command)? {
            entries.push(entry(command, table, &all)?);
        }
    }
    entries.sort_by_key(|entry| entry.place.start);
    let graphs: Vec<Fields<'_>> = fields.get("graph")?;
    let impacts: Vec<Fields<'_>> = fields.get("impact")?;
    fields.done()?;
    let (count, names) = (entries.len(), commands.join("]], [["));
    let sentence =
        format!("a study has 1 to {MOST} entries, not {count}; write one as [[{names}]]");
    ensure!((1..=MOST).contains(&count), written.wrong(&(0..0), sentence));
    let too_many = || written.wrong(&(0..0), format!("a study has at most {MOST} graphs"));
    ensure!(graphs.len() <= MOST, too_many());
    let names = series(&entries);
    let graphs = graphs.into_iter().map(|table| graph(table, &names)).collect::<Result<_, _>>()?;
    ensure!(impacts.len() <= MOST, too_many());
    let impacts = impacts.into_iter().map(|table| parts::impact(table, &names));
    let impacts = impacts.collect::<Result<_, _>>()?;
    Ok(StudyFile {
        written,
        title,
        source,
        without_interface,
        restore,
        hosts,
        entries,
        impacts,
        graphs,
    })
}

/// The names of the series, each once, in the order in which they are written.
pub fn series(entries: &[Entry]) -> Vec<String> {
    each_once(entries.iter().map(|entry| entry.series.clone()))
}

fn entry(command: &'static str, mut table: Fields<'_>, all: &[Word]) -> Result<Entry, Misplaced> {
    let written = table.written;
    table.what = command.to_owned();
    let (series, place): Text = table.get("series")?;
    // `--only` lists series with commas between.
    let with_comma = "the name of a series must not contain a comma";
    ensure!(!series.contains(','), written.wrong(&place, with_comma));
    let series = written.short((series, place), LONGEST_NAME)?;
    let prepare = table.get::<Option<_>>("prepare")?;
    let prepare = prepare.map(|text| written.short(text, LONGEST_TEXT)).transpose()?;
    let part = parts::part(&mut table)?;
    let place = table.place.clone();
    let own = words(table)?;
    if let Some(word) = own.iter().find(|word| WHOLE.contains(&word.key.as_str())) {
        let sentence = format!("'{}' applies to the whole study: write it below [all]", word.key);
        return Err(written.wrong(&word.key_place, sentence));
    }
    let inherited = all.iter().filter(|word| own.iter().all(|other| other.key != word.key));
    let words = inherited.cloned().chain(own.iter().cloned()).collect();
    Ok(Entry { command, series, prepare, part, words, place })
}

fn refuse_typed(written: &Written, words: &[Word]) -> Result<(), Misplaced> {
    for word in words {
        let key = word.key.as_str();
        let sentence = match ELSEWHERE.iter().find(|(other, _)| *other == key) {
            Some((_, why)) => format!("'{key}' is not available here: {why}"),
            None if TYPED.contains(&key) => {
                format!("'{key}' applies to the whole run: use `wiregauge run STUDY --{key}`")
            }
            None => continue,
        };
        return Err(written.wrong(&word.key_place, sentence));
    }
    Ok(())
}

/// All that is left of a table as words.
fn words(mut table: Fields<'_>) -> Result<Vec<Word>, Misplaced> {
    let written = table.written;
    let word = |(key, field): (Spanned<Cow<'_, str>>, Field<'_>)| {
        let (key_place, place) = (key.span(), field.span());
        let key = key.into_inner().into_owned();
        let value = match field.get_ref() {
            DeValue::Boolean(on) => WordValue::Switch(*on),
            DeValue::Array(_) => {
                let parts: Vec<Plain> = Vec::read(written, &key, field)?;
                let parts: Vec<String> = parts.into_iter().map(|Plain(text, _)| text).collect();
                WordValue::Text(parts.join(","))
            }
            _ => WordValue::Text(Plain::read(written, &key, field)?.0),
        };
        Ok(Word { key, value, key_place, place })
    };
    let words = table.rest().into_iter().map(word).collect::<Result<Vec<_>, _>>()?;
    refuse_typed(written, &words).map(|()| words)
}

/// A text or a number as it would be typed, and where it stands.
struct Plain(String, Place);

impl<'a> Read<'a> for Plain {
    fn read(written: &'a Written, key: &str, field: Field<'a>) -> Result<Self, Misplaced> {
        let text = match field.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
            DeValue::Float(number) => number.as_str().replace('_', ""),
            other => {
                let write = "a quoted string, a decimal number, true, false or a list of strings \
                             and numbers";
                return Err(written.kind(&field.span(), key, other, write));
            }
        };
        Ok(Plain(text, field.span()))
    }
}

fn graph(mut table: Fields<'_>, names: &[String]) -> Result<GraphAsked, Misplaced> {
    let written = table.written;
    let title = written.short(table.get("title")?, LONGEST_TEXT)?;
    let kind = written.one_of("kind", table.get("kind")?)?;
    let (metric, metric_place) = table.get("metric")?;
    let spread = |word| written.one_of("spread", word);
    let mut graph = Graph {
        title,
        kind,
        metric,
        also: also(&mut table, kind)?,
        quantile: quantile(&mut table)?,
        spread: table.get::<Option<_>>("spread")?.map(spread).transpose()?.unwrap_or_default(),
        above: table.get::<Option<_>>("above")?.unwrap_or_default(),
        over: over(&mut table, names)?,
        less: lists(&mut table, "less", names, LESS)?,
        each_way: table.get::<Option<_>>("each-way")?.unwrap_or_default(),
        size: size(&mut table)?,
        series: Vec::new(),
        references: Vec::new(),
        notes: Vec::new(),
    };
    for series in table.get::<Vec<Text>>("series")? {
        known(written, &series, names)?;
        graph.series.push(series.0);
    }
    if graph.series.is_empty() {
        let firsts = graph.over.iter().map(|[own, _]| own);
        let firsts = firsts.chain(graph.less.iter().filter_map(|all| all.first()));
        graph.series = firsts.cloned().collect();
    }
    if graph.series.is_empty() {
        graph.series = names.to_vec();
    }
    let references: Vec<Fields<'_>> = table.get("reference")?;
    table.done()?;
    let too_many = || format!("a graph has at most {MOST} references");
    ensure!(references.len() <= MOST, written.wrong(&metric_place, too_many()));
    let references = references.into_iter().map(|table| reference(table, &graph.series));
    let references = references.collect::<Result<_, Misplaced>>()?;
    Ok(GraphAsked { graph, references, metric_place })
}

/// Pairs of series: what is shown is the figure of the first over that of the second.
fn over(table: &mut Fields<'_>, names: &[String]) -> Result<Vec<[String; 2]>, Misplaced> {
    let pairs = lists(table, "over", names, OVER)?;
    Ok(pairs.into_iter().filter_map(|pair| pair.try_into().ok()).collect())
}

/// How many series a list may have, and what a wrong one is told.
type Allowed = (RangeInclusive<usize>, &'static str);

const OVER: Allowed = (2..=2, "over lists pairs of series: [\"a\", \"b\"]");
const LESS: Allowed =
    (2..=MOST, "less lists a series and those that are taken off it: [\"a\", \"b\", \"c\"]");

/// Lists of known series.
fn lists(
    table: &mut Fields<'_>,
    key: &'static str,
    names: &[String],
    (allowed, sentence): Allowed,
) -> Result<Vec<Vec<String>>, Misplaced> {
    let written = table.written;
    let read = |field: Field<'_>| {
        let place = field.span();
        let list = Vec::<Text>::read(written, key, field)?;
        list.iter().try_for_each(|name| known(written, name, names))?;
        ensure!(allowed.contains(&list.len()), written.wrong(&place, sentence));
        Ok(list.into_iter().map(|(name, _)| name).collect())
    };
    let all: Vec<Field<'_>> = table.get(key)?;
    all.into_iter().map(read).collect()
}

/// More metrics, where the kind has room for them.
fn also(table: &mut Fields<'_>, kind: GraphKind) -> Result<Vec<String>, Misplaced> {
    let also: Vec<Text> = table.get("also")?;
    if let (Some((_, place)), 0 | 2) = (also.first(), kind.axes().len()) {
        let sentence = format!("{} shows one metric: write one graph for each", kind.name());
        return Err(table.written.wrong(place, sentence));
    }
    Ok(also.into_iter().map(|(metric, _)| metric).collect())
}

/// The quantile that is written, or the median.
pub(crate) fn quantile(table: &mut Fields<'_>) -> Result<f64, Misplaced> {
    let Some((asked, place)) = table.get::<Option<(f64, Place)>>("quantile")? else {
        return Ok(0.5);
    };
    let known = QUANTILES.into_iter().chain([1.0]).find(|p| *p == asked);
    known.ok_or_else(|| {
        let allowed = QUANTILES.map(|p| p.to_string()).join(", ");
        let sentence = format!("unknown quantile {asked}: use {allowed}, or 1 for the maximum");
        table.written.wrong(&place, sentence)
    })
}

fn size(table: &mut Fields<'_>) -> Result<Option<Bytes>, Misplaced> {
    let Some(Plain(text, place)) = table.get("size")? else { return Ok(None) };
    let size = text.parse::<Bytes>();
    size.map(Some).map_err(|error| table.written.wrong(&place, error))
}

fn known(written: &Written, (name, place): &Text, names: &[String]) -> Result<(), Misplaced> {
    let sentence = format!("unknown series '{name}': use {}", names.join(", "));
    ensure!(names.contains(name), written.wrong(place, sentence));
    Ok(())
}

fn reference(mut table: Fields<'_>, series: &[String]) -> Result<ReferenceAsked, Misplaced> {
    let asked = ReferenceAsked {
        file: table.get("file")?,
        table: table.get("table")?,
        column: table.get("column")?,
        row: table.get("row")?,
        beside: table.get("beside")?,
        place: table.place.clone(),
    };
    if let Some(beside) = &asked.beside {
        known(table.written, beside, series)?;
    }
    table.done()?;
    Ok(asked)
}

#[cfg(test)]
mod tests;
