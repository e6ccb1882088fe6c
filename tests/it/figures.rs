//! `wiregauge report` for papers: plots as SVG files, several records beside each other, tables in
//! Markdown and LaTeX, and how to cite a record.

use crate::support::Scratch;
use crate::support::program::{Printed, wiregauge};
use std::path::Path;
use std::process::Command;

/// Measures simulated round trips into a directory of this name.
fn measured(scratch: &Scratch, name: &str, delay: &str, sizes: &str) {
    let usual = ["latency", "--transport", "synthetic", "--count", "2000", "--out", name];
    let ended =
        wiregauge(&scratch.0, &[&usual[..], &["--synthetic", delay, "--size", sizes]].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

fn report(scratch: &Scratch, arguments: &[&str]) -> Printed {
    wiregauge(&scratch.0, &[&["report"], arguments].concat())
}

fn right(printed: &Printed) -> &str {
    assert_eq!(printed.code, Some(0), "{printed:?}");
    &printed.stdout
}

/// Reads every SVG of a folder with an XML reader that is not ours: a line for each text, path and
/// foreign element.
fn read_svg(folder: &Path) -> String {
    let script = "
import sys, glob, os, xml.etree.ElementTree as tree
for path in sorted(glob.glob(os.path.join(sys.argv[1], '*.svg'))):
    root = tree.parse(path).getroot()
    print('file', os.path.basename(path), root.tag.split('}')[1], root.get('width'))
    known = 'svg title desc rect g text path circle polygon clipPath'.split()
    for one in root.iter():
        tag = one.tag.split('}')[1]
        print(tag if tag in known else 'foreign ' + tag, one.text or one.get('d') or '')
";
    let ended = Command::new("python3").args(["-c", script]).arg(folder).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    String::from_utf8(ended.stdout).unwrap()
}

#[test]
fn every_plot_is_a_file_of_vectors_with_labels_as_text() {
    let scratch = Scratch::new();
    measured(&scratch, "run", "constant(2us)", "64,4096");
    let path = scratch.join("run").join("record.json");
    let record = std::fs::read_to_string(&path).unwrap();
    let hostile = "</text><script>alert(1)</script>&amp;";
    std::fs::write(&path, record.replace("latency synthetic busy 4 KiB", hostile)).unwrap();
    let printed = report(&scratch, &["run", "--svg", "figures", "--no-html"]);
    assert!(right(&printed).ends_with("plots: figures\n"), "{printed:?}");
    let read = read_svg(&scratch.join("figures"));
    for name in ["ccdf-half_rtt", "cdf-half_rtt", "density-0", "density-1", "rounds-latency"] {
        assert!(read.contains(&format!("file {name}.svg svg 16cm")), "{name}: {read}");
    }
    assert!(!read.contains("foreign"), "no image, no script: {read}");
    assert!(read.contains(&format!("title Latency over time: {hostile}")), "{read}");
    assert!(read.contains("text p99.9") && read.contains("text 1 us"), "{read}");
    let page = std::fs::read_to_string(scratch.join("run").join("report.html")).unwrap();
    right(&report(&scratch, &["run"]));
    let again = std::fs::read_to_string(scratch.join("run").join("report.html")).unwrap();
    for page in [&page, &again] {
        assert!(page.contains("data-picture=\"ccdf-half_rtt\""), "the page has them too");
    }
}

#[test]
fn several_records_are_compared_with_the_first_in_one_page() {
    let scratch = Scratch::new();
    measured(&scratch, "before", "constant(2us)", "64");
    measured(&scratch, "after", "constant(3us)", "64");
    let printed = report(&scratch, &["before", "after", "after", "--svg", "figures"]);
    let table = right(&printed);
    let row = |name: &str| table.lines().find(|line| line.contains(name)).unwrap_or_default();
    assert!(row("before (baseline)").contains("1.000"), "{table}");
    assert!(row(" after ").contains("+50 (+50..+50)"), "the difference in per cent: {table}");
    assert!(table.ends_with("page: before/comparison.html\n"), "{table}");
    let page = std::fs::read_to_string(scratch.join("before").join("comparison.html")).unwrap();
    assert!(page.contains("before (baseline)") && page.contains("data-plots=\"overlay-0\""));
    assert_eq!(page.matches("SHA-256 of record.json").count(), 3);
    let read = read_svg(&scratch.join("figures"));
    assert!(read.contains("file ccdf-0.svg") && read.contains("text before (baseline)"), "{read}");
    let answer = "after: 1 of 1 case changed; the largest change: latency synthetic busy 64 B is \
                  50 % slower at p50";
    assert!(table.starts_with(answer) && page.contains(answer), "{table}");
    measured(&scratch, "other", "constant(2us)", "128,256");
    let alone = report(&scratch, &["before", "other"]);
    assert!(right(&alone).starts_with("other: no case in common with the baseline."), "{alone:?}");
    let nine = report(&scratch, &[&["before"][..], &["after"; 8]].concat());
    assert_eq!(nine.code, Some(2), "{nine:?}");
    assert!(nine.stderr.contains("9 records do not fit one page: name at most 8"), "{nine:?}");
}

#[test]
fn tables_are_markdown_and_latex_and_nothing_else_is_printed() {
    let scratch = Scratch::new();
    measured(&scratch, "run", "constant(2us)", "64");
    let printed = report(&scratch, &["run", "--table", "markdown", "--no-html"]);
    let markdown = right(&printed);
    assert!(markdown.contains("| half\\_rtt |") && markdown.contains("|:--|"), "{markdown}");
    assert!(markdown.contains("1.000 (1.000 – 1.000)"), "{markdown}");
    let printed = report(&scratch, &["run", "--table", "latex", "--no-html"]);
    let latex = right(&printed);
    assert!(latex.starts_with("\\begin{table}") && latex.ends_with("\\end{table}\n"), "{latex}");
    assert!(latex.contains("half\\_rtt & ") && latex.contains("1.000 (1.000 -- 1.000)"));
    let printed = report(&scratch, &["run", "run", "--table", "latex", "--no-html"]);
    assert!(right(&printed).contains("run (baseline)"), "{printed:?}");
}

#[test]
fn a_record_is_cited_by_its_hash() {
    let scratch = Scratch::new();
    measured(&scratch, "run", "constant(2us)", "64");
    let page = std::fs::read_to_string(scratch.join("run").join("report.html")).unwrap();
    let summed = Command::new("sha256sum").arg(scratch.join("run").join("record.json")).output();
    let summed = String::from_utf8(summed.unwrap().stdout).unwrap();
    let hash = summed.split(' ').next().unwrap();
    let cited = format!("SHA-256 of record.json {hash}");
    assert!(page.contains(&cited), "the page that the run itself wrote");
    let printed = report(&scratch, &["run", "--verbose", "--no-html"]);
    assert!(right(&printed).contains("cite: wiregauge "), "{printed:?}");
    assert!(printed.stdout.contains(&cited), "{printed:?}");
}
