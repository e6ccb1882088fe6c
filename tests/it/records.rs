//! Records of older versions are still read and shown.

use std::path::{Path, PathBuf};
use wiregauge::pattern::registry;
use wiregauge::record::read_record;
use wiregauge::record::schema::VERSION;
use wiregauge::report::table::Layout;
use wiregauge::report::{html, table};
use wiregauge::stats::Basis;

/// Run directories that older builds left, without samples: `v1/latency`.
fn older() -> Vec<PathBuf> {
    let below = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records");
    below(&records).iter().flat_map(|version| below(version)).collect()
}

#[test]
fn records_of_older_versions_are_read_and_shown() {
    let all = older();
    assert!(!all.is_empty());
    for dir in all {
        let record = read_record(&dir).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(record.version, VERSION, "{}", dir.display());
        let figures = record.runs.iter().flat_map(|run| &run.figures);
        let mut quantiles = figures.flat_map(|figure| &figure.summary.quantiles);
        assert!(quantiles.all(|quantile| quantile.basis == Basis::Pooled), "{}", dir.display());
        let warning = record.warnings.iter().find(|warning| warning.kind == "not_isolated");
        assert!(warning.is_some_and(|warning| !warning.sentence.is_empty()));
        let layout = Layout { verbose: true, ..Layout::default() };
        let text = table::report(&record, &registry::views(), &layout).to_string();
        let page =
            html::render(&record, &registry::views(), std::iter::empty::<Result<_, String>>());
        for run in &record.runs {
            assert!(text.contains(run.case.transport.name()), "{text}");
            for warning in run.warnings.iter().chain(&record.warnings) {
                assert!(text.contains(&format!("{}: ", warning.severity.name())), "{text}");
                assert!(page.contains(&format!("<code>{}</code>", warning.kind)), "{page}");
            }
        }
    }
}
