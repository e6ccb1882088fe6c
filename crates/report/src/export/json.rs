//! One JSON object: `record` as in `record.json`, `samples` as an array of objects. It may go to a
//! terminal, which obeys nothing in it.

use super::number::Number;
use super::rows::Row;
use super::table::{Cell, Rows};
use std::io::{self, Write};
use wiregauge_figures::record::schema::Record;
use wiregauge_plan::written::escaped_json;

/// Writes what comes before the rows.
pub(super) fn head(record: &Record, sink: &mut dyn Write) -> io::Result<()> {
    let record = escaped_json(serde_json::to_string(record)?);
    write!(sink, "{{\"record\":{record},\n\"samples\":[")
}

/// Writes rows, the first behind `separator`.
pub(super) fn body(
    columns: Rows,
    rows: &[Row<'_>],
    separator: &mut &'static str,
    sink: &mut dyn Write,
) -> io::Result<()> {
    for row in rows {
        write!(sink, "{separator}{{")?;
        *separator = ",\n";
        for (at, column) in columns.columns().enumerate() {
            write!(sink, "{}\"{}\":", if at > 0 { "," } else { "" }, column.name)?;
            match &column.cell {
                Cell::Text(cell) => {
                    sink.write_all(escaped_json(serde_json::to_string(cell(row))?).as_bytes())?;
                }
                Cell::Whole(cell) => match cell(row) {
                    Some(number) => write!(sink, "{number}")?,
                    None => sink.write_all(b"null")?,
                },
                Cell::Number(cell) => {
                    write!(sink, "{}", Number { value: cell(row), missing: "null", quote: "\"" })?;
                }
                Cell::Flag(cell) => write!(sink, "{}", cell(row))?,
            }
        }
        sink.write_all(b"}")?;
    }
    Ok(())
}

/// Writes what comes behind them.
pub(super) fn foot(sink: &mut dyn Write) -> io::Result<()> {
    sink.write_all(b"\n]}\n")
}
