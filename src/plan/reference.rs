//! Published figures: the files in `references/`, and what a study takes of them.
//!
//! A figure is in the publication's unit in the file and in ns, B/s or msg/s in a
//! [`Reference`]. A file is strict: an unknown field, a row of the wrong
//! length or an unknown unit is refused with its place.

use super::study::file::{ReferenceAsked, quantile};
use super::study::{Point, Reference};
use super::written::{Field, Fields, Misplaced, Place, Written};
use crate::units::Bytes;
use toml::de::DeValue;

/// The column that stands for that of the link which is found.
pub const LINK_RATE: &str = "link-rate";
/// Most rows of a table.
const MOST_ROWS: usize = 1000;

/// The publications that are shipped: name, text.
pub const SHIPPED: [(&str, &str); 5] = [
    ("gamess", include_str!("../../references/gamess.toml")),
    ("homa", include_str!("../../references/homa.toml")),
    ("potter", include_str!("../../references/potter.toml")),
    ("ramcloud", include_str!("../../references/ramcloud.toml")),
    ("villas", include_str!("../../references/villas.toml")),
];

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
    /// Which quantile of it, where it is a latency.
    pub quantile: f64,
    /// What the columns differ in.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
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

crate::options::named_enum! {
    /// The unit of a figure.
    pub enum Unit {
        /// Nanoseconds.
        Ns = "ns",
        /// Microseconds.
        Us = "us",
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
        name: fields.text("name")?.0,
        source: fields.text("source")?.0,
        place: fields.text("place")?.0,
        system: fields.text("system")?.0,
        notes: plain(fields.texts("notes")?),
        tables: fields
            .tables("table", "a table")?
            .into_iter()
            .map(table)
            .collect::<Result<_, _>>()?,
    };
    fields.done()?;
    Ok(publication)
}

fn plain(texts: Vec<(String, Place)>) -> Vec<String> {
    texts.into_iter().map(|(text, _)| text).collect()
}

fn table(mut fields: Fields<'_>) -> Result<Table, Misplaced> {
    let written = fields.written;
    let unit = written.one_of("unit", fields.text("unit")?)?;
    let columns = plain(fields.texts("columns")?);
    let rows = fields.need("rows")?;
    let rows_place = rows.place.clone();
    let rows = written.list("rows", rows)?;
    if rows.is_empty() || rows.len() > MOST_ROWS || columns.is_empty() {
        let sentence = format!("a table has columns and 1 to {MOST_ROWS} rows");
        return Err(written.wrong(&rows_place, sentence));
    }
    let width = columns.len();
    let rows = rows.into_iter().map(|row| row_of(written, row, width)).collect::<Result<_, _>>()?;
    let table = Table {
        name: fields.text("name")?.0,
        at: fields.text("at")?.0,
        what: fields.text("what")?.0,
        unit,
        metric: fields.optional_text("metric")?.map(|(metric, _)| metric),
        quantile: quantile(&mut fields)?,
        columns,
        rows,
        notes: plain(fields.texts("notes")?),
    };
    fields.done()?;
    Ok(table)
}

/// `[4, 0.92, 0.86]` or `["RC", 50.18]`; `nan` where nothing was published.
fn row_of(written: &Written, row: Field<'_>, width: usize) -> Result<Row, Misplaced> {
    let place = row.place.clone();
    let parts = written.list("rows", row)?;
    let [key, values @ ..] = parts.as_slice() else {
        return Err(written.wrong(&place, "a row begins with its size in bytes or its name"));
    };
    if values.len() != width {
        let sentence = format!("a row has {} figures, and the table {width} columns", values.len());
        return Err(written.wrong(&place, sentence));
    }
    let key = match &key.value {
        DeValue::String(name) => Key::Name(name.clone().into_owned()),
        _ => match written.as_number("a size", key)? {
            size if size >= 1.0 && size.fract() == 0.0 => Key::Size(Bytes(size as u64)),
            _ => return Err(written.wrong(&key.place, "a size is a whole number of bytes")),
        },
    };
    let figure = |field: &Field<'_>| match written.as_number("a figure", field)? {
        number if number.is_nan() => Ok(None),
        number if number > 0.0 && number.is_finite() => Ok(Some(number)),
        _ => Err(written.wrong(&field.place, "a figure is above 0, or nan if it is missing")),
    };
    let values = values.iter().map(figure).collect::<Result<_, _>>()?;
    Ok(Row { key, values })
}

/// What a study asks for and a publication lacks, in a sentence, and where it asks for it.
pub type Lack = (String, Place);

/// The rate of the link that is measured, or why it is not known.
pub type LinkRate = Result<String, String>;

impl Publication {
    /// What a study asks for: the figures, a sentence why they are not drawn, or a refusal.
    pub fn figures(
        &self,
        asked: &ReferenceAsked,
        metric: &str,
        link: &LinkRate,
    ) -> Result<Result<Reference, String>, Lack> {
        let names = self.tables.iter().map(|table| table.name.as_str());
        let (name, place) = &asked.table;
        let table = self.tables.iter().find(|table| table.name == *name);
        let table = table.ok_or_else(|| (unknown("table", name, names), place.clone()))?;
        if table.metric.as_deref() != Some(metric) {
            let is = table.metric.as_deref().unwrap_or("no metric of wiregauge");
            let sentence = format!("table '{}' has {is}, the graph shows {metric}", table.name);
            return Err((sentence, place.clone()));
        }
        let scale = table.unit.scale();
        let column = match (asked.column.0.as_str(), link) {
            (LINK_RATE, Err(why)) => {
                return Ok(Err(format!("{}, {} is not drawn: {why}", self.name, table.at)));
            }
            (LINK_RATE, Ok(rate)) if !table.columns.contains(rate) => {
                let why = format!("it has no column for a link of {rate}");
                return Ok(Err(format!("{}, {} is not drawn: {why}", self.name, table.at)));
            }
            (LINK_RATE, Ok(rate)) => rate.as_str(),
            (column, _) => column,
        };
        let columns = table.columns.iter().map(String::as_str);
        let at = table.columns.iter().position(|known| known == column);
        let at = at.ok_or_else(|| (unknown("column", column, columns), asked.column.1.clone()))?;
        let row = asked.row.as_ref().map(|(row, _)| row.as_str());
        let points = table.points(at, scale, row).map_err(|sentence| {
            let place = asked.row.as_ref().map_or(&asked.place, |(_, place)| place);
            (sentence, place.clone())
        })?;
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
    fn points(&self, at: usize, scale: f64, name: Option<&str>) -> Result<Vec<Point>, String> {
        let names = self.rows.iter().filter_map(|row| match &row.key {
            Key::Name(name) => Some(name.as_str()),
            Key::Size(_) => None,
        });
        let value = |row: &Row| row.values.get(at).copied().flatten().map(|v| v * scale);
        match name {
            None if names.clone().next().is_some() => Err(format!(
                "the rows of table '{}' have names: set row to one of {}",
                self.name,
                names.collect::<Vec<_>>().join(", ")
            )),
            None => {
                let sized = self.rows.iter().filter_map(|row| match row.key {
                    Key::Size(size) => Some(Point { size: Some(size), value: value(row)? }),
                    Key::Name(_) => None,
                });
                Ok(sized.collect())
            }
            Some(name) => {
                let key = Key::Name(name.to_owned());
                let row = self.rows.iter().find(|row| row.key == key);
                let row = row.ok_or_else(|| unknown("row", name, names))?;
                Ok(value(row).map(|value| Point { size: None, value }).into_iter().collect())
            }
        }
    }
}

fn unknown<'a>(what: &str, name: &str, all: impl Iterator<Item = &'a str>) -> String {
    let allowed = all.collect::<Vec<_>>().join(", ");
    let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed };
    format!("unknown {what} '{name}': use {allowed}")
}

#[cfg(test)]
mod tests;
