//! Published figures: the files in `references/`, and what a study takes of them.
//!
//! A figure is in the publication's unit in the file and in ns, B/s or msg/s in a
//! [`Reference`]. A file is strict: an unknown field, a row of the wrong
//! length or an unknown unit is refused with its place.

use super::study::file::{ReferenceAsked, quantile};
use super::study::{self, Point, Reference, Shows};
use super::written::{Field, Fields, Misplaced, Place, Read, Written};
use crate::shipped;
use toml::de::DeValue;
use wiregauge_base::units::Bytes;

/// The column that stands for that of the link which is found.
pub const LINK_RATE: &str = "link-rate";
/// Most rows of a table.
const MOST_ROWS: usize = 1000;

/// The publications that are shipped: name, text.
pub fn shipped() -> impl Iterator<Item = (&'static str, &'static str)> {
    // The workloads are no publication's figures.
    shipped::REFERENCES.iter().copied().filter(|(name, _)| *name != "workloads")
}

/// A publication's figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Publication {
    /// A short name for legends, as `Gamess 2016`.
    pub name: String,
    /// Author, title, year.
    pub source: String,
    /// Where it can be found.
    pub place: String,
    /// What was measured on.
    pub system: String,
    /// Whether the figures are those of hardware: a ratio to them would mean nothing beside a run
    /// over a device that software emulates, or over loopback.
    pub needs_hardware: bool,
    /// What must be known of all of it.
    pub notes: Vec<String>,
    /// The tables.
    pub tables: Vec<Table>,
}

/// One table, or the figures of one paragraph.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name in this file.
    pub name: String,
    /// Where it stands: table, figure or section.
    pub at: String,
    /// What was measured, and with what.
    pub what: String,
    /// The unit of the figures.
    pub unit: Unit,
    /// The metric of ours that it can stand beside.
    pub metric: Option<String>,
    /// What of it, where not the metric itself.
    pub shows: Option<Shows>,
    /// Which quantile of it, where it is a latency.
    pub quantile: f64,
    /// What the columns differ in.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
    /// The IPoIB mode of which it is: `datagram` or `connected`.
    pub ipoib_mode: Option<String>,
    /// What a reader must know of it.
    pub notes: Vec<String>,
}

/// One row: a figure for each column, `None` where none was published.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it is of.
    pub key: Key,
    /// The figures.
    pub values: Vec<Option<f64>>,
}

/// What a row is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// Messages of this size.
    Size(Bytes),
    /// Something with a name.
    Name(String),
}

wiregauge_base::options::named_enum! {
    /// The unit of a figure.
    pub enum Unit {
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
        /// 10^6 bytes per second.
        MBps = "MB/s",
        /// 10^6 bits per second.
        Mbps = "Mb/s",
        /// 10^9 bits per second.
        Gbps = "Gb/s",
        /// Messages per second.
        PerSecond = "msg/s",
        /// Of a poll.
        PerPoll = "1/poll",
        /// Of another figure.
        Ratio = "ratio",
        /// Per cent of messages.
        Percent = "%",
    }
}

impl Unit {
    /// What turns a figure into ns, B/s, msg/s or a share.
    pub const fn scale(self) -> f64 {
        match self {
            Unit::Us => 1e3,
            Unit::MBps => 1e6,
            Unit::Mbps => 1e6 / 8.0,
            Unit::Gbps => 1e9 / 8.0,
            Unit::Ns | Unit::PerSecond | Unit::PerPoll | Unit::Ratio => 1.0,
            Unit::Percent => 1e-2,
        }
    }
}

/// Reads a publication's figures.
pub fn parse(file: &str, text: &str) -> Result<Publication, Misplaced> {
    let written = Written { file: file.into(), text: text.into() };
    let mut fields = written.fields("a reference")?;
    let publication = Publication {
        name: fields.get("name")?,
        source: fields.get("source")?,
        place: fields.get("place")?,
        system: fields.get("system")?,
        needs_hardware: fields.get::<Option<_>>("needs-hardware")?.unwrap_or_default(),
        notes: fields.get("notes")?,
        tables: fields.get::<Vec<_>>("table")?.into_iter().map(table).collect::<Result<_, _>>()?,
    };
    fields.done()?;
    Ok(publication)
}

fn table(mut fields: Fields<'_>) -> Result<Table, Misplaced> {
    let written = fields.written;
    let unit = written.one_of("unit", fields.get("unit")?)?;
    let shows = |word| written.one_of("shows", word);
    let columns: Vec<String> = fields.get("columns")?;
    let rows: Field<'_> = fields.get("rows")?;
    let rows_place = rows.span();
    let rows: Vec<Field<'_>> = Vec::read(written, "rows", rows)?;
    let is_table = (1..=MOST_ROWS).contains(&rows.len()) && !columns.is_empty();
    let sentence = format!("a table has columns and 1 to {MOST_ROWS} rows");
    ensure!(is_table, written.wrong(&rows_place, sentence));
    let width = columns.len();
    let rows = rows.into_iter().map(|row| row_of(written, row, width)).collect::<Result<_, _>>()?;
    let table = Table {
        name: fields.get("name")?,
        at: fields.get("at")?,
        what: fields.get("what")?,
        unit,
        metric: fields.get("metric")?,
        shows: fields.get::<Option<_>>("shows")?.map(shows).transpose()?,
        quantile: quantile(&mut fields)?,
        columns,
        rows,
        ipoib_mode: fields.get("ipoib-mode")?,
        notes: fields.get("notes")?,
    };
    fields.done()?;
    Ok(table)
}

/// `[4, 0.92, 0.86]` or `["RC", 50.18]`; `nan` where nothing was published.
fn row_of(written: &Written, row: Field<'_>, width: usize) -> Result<Row, Misplaced> {
    let place = row.span();
    let mut parts = Vec::<Field<'_>>::read(written, "rows", row)?.into_iter();
    let Some(key) = parts.next() else {
        return Err(written.wrong(&place, "a row begins with its size in bytes or its name"));
    };
    let sentence = format!("a row has {} figures, and the table {width} columns", parts.len());
    ensure!(parts.len() == width, written.wrong(&place, sentence));
    let key = match key.get_ref() {
        DeValue::String(name) => Key::Name(name.clone().into_owned()),
        _ => match Read::read(written, "a size", key)? {
            (size, _) if size >= 1.0 && f64::fract(size) == 0.0 => Key::Size(Bytes(size as u64)),
            (_, place) => return Err(written.wrong(&place, "a size is a whole number of bytes")),
        },
    };
    let figure = |field| match Read::read(written, "a figure", field)? {
        (number, _) if f64::is_nan(number) => Ok(None),
        (number, _) if number > 0.0 && number.is_finite() => Ok(Some(number)),
        (_, place) => Err(written.wrong(&place, "a figure is above 0, or nan if it is missing")),
    };
    Ok(Row { key, values: parts.map(figure).collect::<Result<_, _>>()? })
}

/// What a study asks for and a publication lacks, in a sentence, and where it asks for it.
pub type Lack = (String, Place);

/// What chooses among published figures: each as this machine has it, or why it is not known.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The rate of the link that is measured, as `FDR`.
    pub link_rate: Result<String, String>,
    /// The IPoIB mode of the interfaces that are measured, `datagram` or `connected`.
    pub ipoib_mode: Result<String, String>,
}

impl Publication {
    /// What a study asks for of what its graph shows ([`Graph::what`](super::study::Graph::what)):
    /// the figures, a sentence why they are not drawn, or a refusal.
    pub fn figures(
        &self,
        asked: &ReferenceAsked,
        metric: &str,
        machine: &Machine,
    ) -> Result<Result<Reference, String>, Lack> {
        let names = self.tables.iter().map(|table| table.name.as_str());
        let (name, place) = &asked.table;
        let table = &self.tables[position("table", name, names).map_err(at(place))?];
        let own = table.what_is();
        let is = own.as_deref().unwrap_or("no metric of wiregauge");
        let sentence = format!("table '{}' has {is}, the graph shows {metric}", table.name);
        ensure!(own.as_deref() == Some(metric), (sentence, place.clone()));
        let undrawn =
            |why: &str| Ok(Err(format!("{}, {} is not drawn: {why}", self.name, table.at)));
        if let Some(own) = &table.ipoib_mode {
            match &machine.ipoib_mode {
                Err(why) => return undrawn(why),
                Ok(found) if found != own => {
                    return undrawn(&format!("it is of {own} mode, and this is {found} mode"));
                }
                Ok(_) => {}
            }
        }
        let column = match (asked.column.0.as_str(), &machine.link_rate) {
            (LINK_RATE, Err(why)) => return undrawn(why),
            (LINK_RATE, Ok(rate)) if !table.columns.contains(rate) => {
                return undrawn(&format!("it has no column for a link of {rate}"));
            }
            (LINK_RATE, Ok(rate)) => rate.as_str(),
            (column, _) => column,
        };
        let columns = table.columns.iter().map(String::as_str);
        let number = position("column", column, columns).map_err(at(&asked.column.1))?;
        let row = asked.row.as_ref().map(|(row, _)| row.as_str());
        let place = asked.row.as_ref().map_or(&asked.place, |(_, place)| place);
        let points = table.points(number, row).map_err(at(place))?;
        let of = row.map(|row| format!(" {row}")).unwrap_or_default();
        Ok(Ok(Reference {
            name: format!("{}, {}{of} {column}", self.name, table.at),
            source: format!("{}, {}: {}", self.source, table.at, table.what),
            system: self.system.clone(),
            beside: asked.beside.as_ref().map(|(series, _)| series.clone()),
            quantile: table.quantile,
            points,
            notes: table.notes.clone(),
        }))
    }
}

impl Table {
    /// What its figures are.
    fn what_is(&self) -> Option<String> {
        Some(study::what(self.metric.as_deref()?, self.shows))
    }

    /// The figures of a column, of the row of this name where rows have names.
    fn points(&self, column: usize, name: Option<&str>) -> Result<Vec<Point>, String> {
        let (mut named, mut sized) = (Vec::new(), Vec::new());
        for row in &self.rows {
            let value = row.values.get(column).copied().flatten();
            let value = value.map(|value| value * self.unit.scale());
            match &row.key {
                Key::Name(name) => named.push((name.as_str(), value)),
                Key::Size(size) => {
                    sized.extend(value.map(|value| Point { size: Some(*size), value }));
                }
            }
        }
        let names = named.iter().map(|(name, _)| *name);
        match name {
            None if named.is_empty() => Ok(sized),
            None => Err(format!(
                "the rows of table '{}' have names: set row to one of {}",
                self.name,
                names.collect::<Vec<_>>().join(", ")
            )),
            Some(name) => {
                let (_, value) = named[position("row", name, names)?];
                Ok(value.map(|value| Point { size: None, value }).into_iter().collect())
            }
        }
    }
}

/// For `map_err`: puts the place beside a sentence.
fn at(place: &Place) -> impl FnOnce(String) -> Lack {
    move |sentence| (sentence, place.clone())
}

/// The position of a name among all.
fn position<'a>(
    what: &str,
    name: &str,
    all: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, String> {
    all.clone().position(|known| known == name).ok_or_else(|| {
        let allowed = all.collect::<Vec<_>>().join(", ");
        let allowed = if allowed.is_empty() { "none" } else { &allowed };
        format!("unknown {what} '{name}': use {allowed}")
    })
}

#[cfg(test)]
mod tests;
