//! What a terminal of any width shows: no line is wider than it, no word is broken, and the figures
//! that decide come first. `UPDATE_TEXT=1` writes the expected texts again.

use super::*;
use proptest::prelude::*;
use std::path::PathBuf;
use wiregauge::record::read_record;
use wiregauge::report::model::{Cell, OfRun, Rank, Table, TableField, figure, number, prose, text};
use wiregauge::report::table::Columns;

const WIDTHS: [usize; 4] = [40, 80, 120, 200];

fn report(record: &Record, layout: &Layout) -> String {
    table::report(record, &registry::views(), layout).to_string()
}

fn width(line: &str) -> usize {
    line.chars().count()
}

fn below(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Compares with the expected text of this name, at all widths.
fn is_as_expected(name: &str, record: &Record) {
    let path = below(&format!("tables/{name}.txt"));
    let all = WIDTHS.map(|width| {
        let text = report(record, &Layout::of_width(width));
        format!("--- {width}\n{text}")
    });
    let all = all.concat();
    if std::env::var_os("UPDATE_TEXT").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    assert!(all == expected, "UPDATE_TEXT=1 writes it again:\n{all}");
}

/// Surveyed, with errors of all kinds.
fn uneven() -> Record {
    let mut found = surveyed();
    let interval = |low, high| Some(Interval { low: Value(low), high: Value(high) });
    for run in &mut found.runs {
        for figure in &mut run.figures {
            for quantile in &mut figure.summary.quantiles {
                quantile.interval = match (quantile.p, run.case.wait) {
                    (0.5, _) => interval(14_900.0, 15_800.0),
                    (0.99, Wait::Busy) => interval(15_000.0, 90_000.0),
                    (0.999, _) => interval(f64::NEG_INFINITY, f64::INFINITY),
                    _ => interval(15_300.0, 15_600.0),
                };
            }
        }
    }
    let varies = Warning::RateVaries { metric: "bandwidth", share: 0.4 };
    found.runs[1].warnings.push((&varies).into());
    let noisy = Warning::NoisyCore { cpu: 2, share: 0.05, longest_ns: 1e6 };
    found.warnings.push((&noisy).into());
    found.noise[0].lost_ns = 5e7;
    // A message takes 15 us: a gap in each twentieth.
    found.noise[0].gaps = 3250;
    found
}

#[test]
fn a_survey_at_all_widths() {
    is_as_expected("survey", &uneven());
}

#[test]
fn records_of_load_and_rpc_at_all_widths() {
    for name in ["load", "rpc"] {
        is_as_expected(name, &read_record(&below(&format!("records/v1/{name}"))).unwrap());
    }
}

#[test]
fn at_80_columns_a_survey_has_the_figures_that_decide() {
    let text = report(&uneven(), &Layout::of_width(80));
    let head: String = text.lines().skip_while(|line| !line.is_empty()).take(3).collect();
    for word in ["p50", "p99", "max", "msg/s", "Gb/s"] {
        assert!(head.contains(word), "{word}\n{text}");
    }
    let row = text.lines().find(|line| line.starts_with("tcp  ") && line.contains("busy")).unwrap();
    // Of the bandwidth the run has a warning; the rate has none.
    assert!(row.contains("15.37 ±0.47 ") && row.contains('!'), "{row}");
}

#[test]
fn all_columns_are_shown_where_they_are_asked_for() {
    let layout = Layout { columns: Columns::All, ..Layout::of_width(80) };
    let text = report(&uneven(), &layout);
    for head in ["p99.9", "of rounds", "MB/s", "lost"] {
        assert!(text.contains(head), "{head}\n{text}");
    }
    assert!(!text.contains("more column"), "{text}");
    let columns = "lost,p99.9".parse().unwrap();
    let text = report(&uneven(), &Layout { columns, ..Layout::of_width(80) });
    assert!(text.contains("p99.9") && text.contains("lost") && !text.contains("max us"), "{text}");
}

#[test]
fn a_column_that_no_table_has_is_refused_with_those_there_are() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    command.args(["report", "--no-html"]).arg(below("records/v1/load"));
    let output = command.args(["--columns", "factor,n"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("no table has 'factor': use all, or some"), "{said}");
    // What no table of any command has is refused before anything is measured.
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    let output = command.args(["latency", "--columns", "p5o"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{said}");
    assert!(said.contains("no table has 'p5o' (did you mean 'p50'?)"), "{said}");
    // A table without any of them is left out.
    let columns = "probe".parse().unwrap();
    let text = report(&uneven(), &Layout { columns, ..Layout::default() });
    assert!(!text.contains("tcp  "), "{text}");
}

#[test]
fn a_mark_stands_at_what_a_warning_weakens_and_only_there() {
    let text = report(&uneven(), &Layout::of_width(200));
    let marks = |start: &str, wait: &str| {
        let mut rows = text.lines().filter(|line| line.starts_with(start) && line.contains(wait));
        rows.next().unwrap().matches('!').count()
    };
    // Of tcp's bandwidth there is a warning; the noise of the machine is told in the answer alone.
    assert_eq!((marks("udp  ", "busy"), marks("udp  ", "block")), (0, 0), "{text}");
    assert!(marks("tcp  ", "busy") > 0, "{text}");
    assert!(text.contains("from p89 on, latencies may be the machine's."), "{text}");
    // A program finds the mark beside the error, and no value has one.
    let text = report(&uneven(), &Layout::default());
    assert!(text.contains("±18!") && !text.contains("345.7!"), "{text}");
}

struct Line(Vec<String>, f64, f64);

impl OfRun for Line {}

fn made(rows: Vec<Line>, sentence: usize) -> Table {
    let mut fields: Vec<TableField<'_, Line>> =
        vec![text("name", |line: &Line| line.0[0].clone()), text("wait", |_: &Line| "busy")];
    for (at, rank) in [Rank::Main, Rank::More, Rank::Main].into_iter().enumerate() {
        let cell = move |line: &Line| {
            let (value, error) = (line.1 * 10f64.powi(at as i32), line.2);
            let around = Interval { low: Value(value - error), high: Value(value + 9.0 * error) };
            Cell::figure(value, Some(around), 1.0)
        };
        fields.push(figure(&format!("p{at} of it"), "us", cell).rank(rank));
    }
    fields.push(prose("what", move |line: &Line| line.0[..sentence].join(" ")).rank(Rank::Main));
    fields.push(number("n", "", |line: &Line| Cell::Count(line.0.len() as u64)));
    Table::of(rows, fields).unwrap()
}

proptest! {
    #[test]
    fn no_line_of_a_table_is_wider_than_the_terminal_and_no_word_is_broken(
        rows in prop::collection::vec(
            (prop::collection::vec("[a-z0-9-]{1,12}", 8), 1e-3f64..1e6, 0.0f64..1e4), 1..6,
        ),
        width in 40usize..200,
        sentence in 1usize..8,
        all: bool,
    ) {
        let words: Vec<String> = rows.iter().flat_map(|row| row.0[..sentence].to_vec()).collect();
        let rows = rows.into_iter().map(|(words, value, error)| Line(words, value, error));
        let columns = if all { Columns::All } else { Columns::Fitting };
        let layout = Layout { columns, ..Layout::of_width(width) };
        let text = table::table(&made(rows.collect(), sentence), &layout).to_string();
        for line in text.lines() {
            prop_assert!(super::terminal::width(line) <= width, "{line:?} of {width}");
            prop_assert!(!line.ends_with(' '));
        }
        if all || text.contains("what") {
            let shown: Vec<&str> = text.split_whitespace().collect();
            prop_assert!(words.iter().all(|word| shown.contains(&word.as_str())), "{text}");
        }
    }
}

#[test]
fn no_line_of_a_report_is_wider_than_the_terminal() {
    let mut records = vec![uneven()];
    records.extend(
        ["load", "rpc", "stream"]
            .map(|name| read_record(&below(&format!("records/v1/{name}"))).unwrap()),
    );
    for width in (40..200).step_by(7) {
        for (record, verbose) in records.iter().flat_map(|record| [(record, false), (record, true)])
        {
            let text = report(record, &Layout { verbose, ..Layout::of_width(width) });
            let wide = text.lines().find(|line| super::terminal::width(line) > width);
            assert_eq!(wide, None, "{width}");
        }
    }
}

/// What the program prints of a record with these arguments and variables.
fn printed(arguments: &[&str], variables: &[(&str, &str)]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
    command.args(["report", "--no-html"]).arg(below("records/v1/load")).args(arguments);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_pipe_gets_lines_for_programs_and_the_variables_say_otherwise() {
    let is_colored = |text: &str| text.contains('\x1b');
    let piped = printed(&[], &[]);
    assert!(!is_colored(&piped) && piped.lines().any(|line| line.contains("  ±  ")), "{piped}");
    let narrow = printed(&[], &[("COLUMNS", "60")]);
    assert!(narrow.lines().all(|line| width(line) <= 60), "{narrow}");
    assert!(is_colored(&printed(&["--color", "always"], &[])));
    assert!(is_colored(&printed(&[], &[("CLICOLOR_FORCE", "1")])));
    assert!(!is_colored(&printed(&["--color", "never"], &[("CLICOLOR_FORCE", "1")])));
    assert!(!is_colored(&printed(&[], &[("NO_COLOR", "1")])));
    let whole = printed(&["--verbose"], &[]);
    assert!(whole.contains("note: ") && !piped.contains("note: "));
}
