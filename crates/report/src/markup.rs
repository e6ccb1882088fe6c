//! Tables in the languages of documents: Markdown and LaTeX.
//!
//! The numbers are those of the page, each figure with its interval. Must never: let text of a
//! record be markup.

use super::comparison::markdown;
use super::html::figure_text;
use super::model::{Cell, Column, Table};
use super::number;
use wiregauge_base::options::named_enum;

named_enum! {
    /// What a table is written in.
    pub enum Markup {
        /// As GitHub renders it.
        Markdown = "markdown",
        /// A `tabular` in a `table`, which needs no package.
        Latex = "latex",
    }
}

impl Markup {
    /// These tables, those of the page with all their rows.
    pub fn tables(self, tables: &[Table]) -> String {
        let shown = tables.iter().filter(|table| table.show.on_page() && !table.rows.is_empty());
        let all: Vec<String> = shown.map(|table| self.table(table)).collect();
        all.join("\n")
    }

    fn table(self, table: &Table) -> String {
        let shown: Vec<(usize, &Column)> =
            table.columns.iter().enumerate().filter(|(_, column)| column.show.on_page()).collect();
        let heads = shown.iter().map(|(_, column)| match column.unit.as_str() {
            "" => self.escaped(&column.head),
            unit => self.escaped(&format!("{} ({unit})", column.head)),
        });
        let heads = self.line(heads);
        let rows = table.rows.iter().map(|row| {
            let cell = |(at, column): &(usize, &Column)| {
                let cell = row.cells.get(*at).unwrap_or(&Cell::None);
                self.escaped(&words(cell, column.with_error))
            };
            self.line(shown.iter().map(cell))
        });
        let (rows, caption) = (rows.collect::<String>(), self.escaped(table.page_caption()));
        let side = |right, left| -> Vec<&str> {
            let of = |(_, column): &(usize, &Column)| if column.is_number { right } else { left };
            shown.iter().map(of).collect()
        };
        match self {
            Markup::Markdown => {
                let above = if caption.is_empty() { caption } else { format!("{caption}\n\n") };
                format!("{above}{heads}|{}|\n{rows}", side("--:", ":--").join("|"))
            }
            Markup::Latex => {
                let columns = side("r", "l").concat();
                let below = match caption.is_empty() {
                    true => String::new(),
                    false => format!("\\caption{{{caption}}}\n"),
                };
                format!(
                    "\\begin{{table}}\n\\centering\n\\begin{{tabular}}{{{columns}}}\n\\hline\n\
                     {heads}\\hline\n{rows}\\hline\n\\end{{tabular}}\n{below}\\end{{table}}\n"
                )
            }
        }
    }

    /// A row of cells.
    fn line(self, cells: impl Iterator<Item = String>) -> String {
        let cells: Vec<String> = cells.collect();
        match self {
            Markup::Markdown => format!("| {} |\n", cells.join(" | ")),
            Markup::Latex => format!("{} \\\\\n", cells.join(" & ")),
        }
    }

    fn escaped(self, text: &str) -> String {
        match self {
            Markup::Markdown => markdown::cell(text),
            Markup::Latex => text.chars().map(latex).collect(),
        }
    }
}

/// A cell as the page shows it, with the interval of its figure.
fn words(cell: &Cell, with_interval: bool) -> String {
    match cell.without_mark() {
        Cell::None | Cell::Bad(_) => "–".into(),
        Cell::Text(text) => text.clone(),
        Cell::Count(n) => number::count(*n),
        Cell::Size(n) => number::bytes(*n),
        Cell::Range(least, greatest) => {
            let [least, greatest] = [least, greatest].map(|end| number::on_page(*end, None));
            format!("{least}..{greatest}")
        }
        Cell::TooSmall => "n too small".into(),
        Cell::NotComputed => "not computed".into(),
        Cell::Figure(figure) => {
            let weak = if figure.is_weak { "!" } else { "" };
            let value = format!("{}{}{weak}", figure_text(figure), figure.sign());
            match figure.interval.filter(|_| with_interval) {
                Some(both) => {
                    let both = number::interval_on_page(figure.value.0, both, figure.scale);
                    format!("{value} ({both})")
                }
                None => value,
            }
        }
    }
}

/// A letter as LaTeX prints it.
fn latex(c: char) -> String {
    match c {
        '\\' => "\\textbackslash{}".into(),
        '~' => "\\textasciitilde{}".into(),
        '^' => "\\textasciicircum{}".into(),
        '<' => "\\textless{}".into(),
        '>' => "\\textgreater{}".into(),
        '|' => "\\textbar{}".into(),
        '"' => "\\textquotedbl{}".into(),
        '&' | '%' | '$' | '#' | '_' | '{' | '}' => format!("\\{c}"),
        '∞' => "$\\infty$".into(),
        '±' => "$\\pm$".into(),
        '×' => "$\\times$".into(),
        '–' => "--".into(),
        '\u{202f}' => "\\,".into(),
        c if c.is_control() => " ".into(),
        c => c.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{OfRun, figure, text};
    use wiregauge_stats::{Interval, Value};

    struct Row(&'static str, f64);
    impl OfRun for Row {}

    fn table() -> Table {
        let around = Interval { low: Value(900.0), high: Value(1100.0) };
        let fields = [
            text("run", |row: &Row| row.0),
            figure("p50", "us", move |row: &Row| Cell::figure(row.1, Some(around), 1e-3)),
        ];
        let rows = [Row("a|b_c <x>", 1000.0), Row("\\input{/etc/passwd}\n50 %", f64::NAN)];
        Table::of(rows, fields).unwrap_or_default().caption("Results & more")
    }

    #[test]
    fn a_table_is_markdown_with_its_numbers_and_intervals() {
        let text = Markup::Markdown.tables(&[table()]);
        assert!(
            text.starts_with("Results &amp; more\n\n| run | p50 (us) |\n|:--|--:|\n"),
            "{text}"
        );
        assert!(text.contains("| a\\|b\\_c &lt;x&gt; | 1.000 (0.9000 – 1.100) |\n"), "{text}");
        assert_eq!(text.lines().count(), 6, "a line break in a cell is none: {text}");
    }

    #[test]
    fn a_table_is_latex_in_which_no_text_is_a_command() {
        let text = Markup::Latex.tables(&[table()]);
        let row = "a\\textbar{}b\\_c \\textless{}x\\textgreater{} & 1.000 (0.9000 -- 1.100) \\\\\n";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("\\textbackslash{}input\\{/etc/passwd\\} 50 \\% &"), "{text}");
        assert!(
            text.contains("\\begin{tabular}{lr}") && text.contains("\\caption{Results \\& more}")
        );
    }
}
