//! The section of several hosts: a heat map of each figure, slow pairs, bisection bandwidth.

use super::{escape, number};
use crate::record::schema::Record;
use crate::report::matrix::{Matrix, matrices};
use crate::report::table;

/// Most hosts of which the cells show their numbers; of more they are in the cells' titles.
const MOST_NUMBERS: usize = 24;

/// The section; empty where no more than one pair was measured.
pub fn section(record: &Record) -> String {
    let (matrices, notes) = (matrices(record), table::pairs_notes(record));
    let bisections = table::bisections(record);
    if matrices.is_empty() && notes.is_empty() && bisections.is_none() {
        return String::new();
    }
    let mut out = String::from(
        "<section id=\"pairs\" aria-labelledby=\"h-pairs\">\n\
         <h2 id=\"h-pairs\">Pairs of hosts</h2>\n",
    );
    if let Some(table) = bisections {
        out.push_str(&format!("<pre>{}</pre>\n", escape(&table)));
    }
    if !notes.is_empty() {
        let items: String = notes.iter().map(|line| format!("<li>{}</li>", escape(line))).collect();
        out.push_str(&format!("<ul>{items}</ul>\n"));
    }
    matrices.iter().for_each(|matrix| out.push_str(&heat_map(matrix)));
    out.push_str("</section>\n");
    out
}

fn heat_map(matrix: &Matrix<'_>) -> String {
    let hosts = matrix.names.len();
    let with_numbers = hosts <= MOST_NUMBERS;
    let head = |name: &str| match with_numbers {
        true => format!("<th scope=\"col\" class=\"n\">{}</th>", escape(name)),
        false => format!("<th scope=\"col\" title=\"{}\"></th>", escape(name)),
    };
    let mut out = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n\
         <table class=\"heat{1}\">\n<caption>{0}, in {2}: client in the row, server in the column; \
         the darker, the worse</caption>\n<thead><tr><td></td>{3}</tr></thead>\n<tbody>\n",
        escape(&matrix.title),
        if with_numbers { "" } else { " dense" },
        matrix.unit,
        matrix.names.iter().map(|name| head(name)).collect::<String>()
    );
    for (row, name) in matrix.names.iter().enumerate() {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape(name)));
        for column in 0..hosts {
            out.push_str(&cell(matrix, row, column, with_numbers));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
    out
}

fn cell(matrix: &Matrix<'_>, row: usize, column: usize, with_number: bool) -> String {
    let Some((value, run)) = matrix.cells.get(&(row, column)) else {
        return if row == column {
            "<td></td>".into()
        } else {
            "<td class=\"none\">–</td>".into()
        };
    };
    let heat = matrix.heat(*value);
    let shown = number::short(value * matrix.factor);
    let text = if with_number { shown.as_str() } else { "" };
    format!(
        "<td class=\"n\" data-run=\"{run}\" style=\"--heat:{heat:.3}\" \
         title=\"{} to {}: {shown} {}\">\
         <data value=\"{}\">{text}</data></td>",
        escape(matrix.names[row]),
        escape(matrix.names[column]),
        matrix.unit,
        number::plain(*value)
    )
}
