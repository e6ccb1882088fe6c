//! Comma-separated values: RFC 4180, but with LF at the ends of lines, which every reader of our
//! time takes and which `awk`, `diff` and `git` want.

use super::number::Number;
use super::rows::Row;
use super::table::{Cell, Rows};
use std::borrow::Cow;
use std::io::{self, Write};

/// Writes the names of the columns.
pub(super) fn head(columns: Rows, sink: &mut dyn Write) -> io::Result<()> {
    writeln!(sink, "{}", columns.names().join(","))
}

/// Writes rows.
pub(super) fn body(columns: Rows, rows: &[Row<'_>], sink: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<&Cell> = columns.columns().map(|column| &column.cell).collect();
    for row in rows {
        for (at, cell) in columns.iter().enumerate() {
            if at > 0 {
                sink.write_all(b",")?;
            }
            match cell {
                Cell::Text(cell) => sink.write_all(quoted(cell(row)).as_bytes())?,
                Cell::Whole(cell) => {
                    cell(row).map_or(Ok(()), |number| write!(sink, "{number}"))?;
                }
                Cell::Number(cell) => {
                    write!(sink, "{}", Number { value: cell(row), missing: "", quote: "" })?;
                }
                Cell::Flag(cell) => write!(sink, "{}", cell(row))?,
            }
        }
        sink.write_all(b"\n")?;
    }
    Ok(())
}

/// A field with quotes where it needs them.
fn quoted(text: &str) -> Cow<'_, str> {
    match text.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_where_they_need_it() {
        let fields = ["tcp busy 64 B", "a,b", "say \"so\"", "two\nlines"].map(super::quoted);
        assert_eq!(fields, ["tcp busy 64 B", "\"a,b\"", "\"say \"\"so\"\"\"", "\"two\nlines\""]);
    }
}
