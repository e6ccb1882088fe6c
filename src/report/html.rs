//! The report as one HTML file: no network, no library to install, readable without scripts.
//!
//! Takes a record, the views of its patterns and its samples; gives the file's text. The tables are
//! written here, the plots are drawn by `web/` from the data of [`super::model`] and from the
//! curves of [`super::curves`]. A record is foreign input: every text of it passes `escape` or
//! `script_json`.

mod encode;
mod instrument;
mod number;
mod section;
mod tables;

use super::curves::{self, Reduced};
use super::model::Section;
use super::view::{self, PatternView};
use crate::record::schema::{Record, RecordedWarning};
use crate::sample::RoundSamples;
use crate::warning::Warning;

/// The viewer's modules in the order in which they use each other; see `web/README.md`.
const SCRIPTS: [&str; 10] = [
    include_str!("../../web/decode.js"),
    include_str!("../../web/units.js"),
    include_str!("../../web/download.js"),
    include_str!("../../web/theme.js"),
    include_str!("../../web/plot.js"),
    include_str!("../../web/distribution.js"),
    include_str!("../../web/density.js"),
    include_str!("../../web/figure.js"),
    include_str!("../../web/surface.js"),
    include_str!("../../web/main.js"),
];
const UPLOT: &str = include_str!("../../web/vendor/uPlot.iife.min.js");
const UPLOT_CSS: &str = include_str!("../../web/vendor/uPlot.min.css");
const CSS: &str = include_str!("../../web/page.css");

/// Nothing may be fetched or sent, whatever a record has smuggled in.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// The whole page. An error among the rounds ends their reading; the page shows it as a fault,
/// and all that came before it.
pub fn render<E: std::fmt::Display>(
    record: &Record,
    patterns: &[&dyn PatternView],
    rounds: impl IntoIterator<Item = Result<RoundSamples, E>>,
) -> String {
    let reduced = curves::reduce(record, rounds);
    let pairs = view::pairs(record).into_iter().collect::<Vec<_>>();
    let results = view::results(record, patterns);
    let asked = [view::study(record), view::clocks(record)].into_iter().flatten();
    let middle: Vec<Section> = asked.chain(results.iter().cloned()).collect();
    let overall = [view::rounds(record), view::sweep(record), view::noise(record)];
    let overall: Vec<Section> = overall.into_iter().flatten().collect();
    let mut page = String::with_capacity(1 << 20);
    let title = tables::title(record);
    page.push_str("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"wiregauge {}\">\n<title>{}</title>\n\
         <style>\n{UPLOT_CSS}\n{CSS}</style>\n</head>\n<body>\n",
        escape(&record.tool),
        escape(&title),
    ));
    page.push_str(&tables::header(record, &reduced));
    page.push_str("<main>\n");
    put_all(&mut page, &pairs);
    if record.clocks.is_empty() {
        page.push_str(&results_section(record, &results));
    }
    page.push_str(&tables::warnings(record, &disagreements(record, &reduced)));
    put_all(&mut page, &middle);
    page.push_str(PLOTS);
    put_all(&mut page, &overall);
    if record.clocks.is_empty() {
        put_all(&mut page, &Vec::from_iter(view::runs(record)));
    }
    page.push_str(&tables::environment(record));
    page.push_str(&tables::plan(record));
    page.push_str(&tables::data(record, &reduced));
    page.push_str("</main>\n");
    push_scripts(&mut page, record, &[middle, overall].concat(), &reduced);
    page.push_str("</body>\n</html>\n");
    page
}

/// Where the viewer puts its plots; hidden until it has something to put there.
const PLOTS: &str = r#"<noscript><p class="note">The plots need scripts; the tables do not.</p>
</noscript>
<section id="distribution" aria-labelledby="h-distribution" hidden>
<h2 id="h-distribution">Distribution</h2></section>
<section id="density" aria-labelledby="h-density" hidden>
<h2 id="h-density">Latency over time</h2></section>
"#;

fn put_all(page: &mut String, sections: &[Section]) {
    sections.iter().for_each(|one| page.push_str(&section::section(one)));
}

/// The tables that answer the question, and what bounds them.
fn results_section(record: &Record, sections: &[Section]) -> String {
    let tables = sections.iter().flat_map(|section| &section.results).map(section::table);
    format!(
        "<section id=\"results\" aria-labelledby=\"h-results\">\n\
         <h2 id=\"h-results\">Results</h2>\n{}{}\
         <p class=\"downloads\">\
         <button type=\"button\" data-csv=\"results\">results.csv</button></p>\n\
         {}{}</section>\n",
        instrument::conditions(record),
        tables.collect::<String>(),
        instrument::unavailable(record),
        instrument::instrument(record)
    )
}

fn push_scripts(page: &mut String, record: &Record, sections: &[Section], reduced: &Reduced) {
    let mut json = |id: &str, text: &str| {
        page.push_str(&format!("<script type=\"application/json\" id=\"{id}\">"));
        page.push_str(&script_json(text));
        page.push_str("</script>\n");
    };
    json("record", &serde_json::to_string(record).unwrap_or_else(|_| "null".to_owned()));
    json("samples", &encode::samples(reduced));
    let plots = section::plots(sections);
    if plots != "[]" {
        json("plots", &plots);
    }
    page.push_str("<script>\n");
    page.push_str(UPLOT);
    page.push_str("\n(() => {\n\"use strict\";\n");
    for script in SCRIPTS {
        page.push_str(script);
    }
    page.push_str("})();\n</script>\n");
}

/// Where the samples and the figures of the record differ: the page shows both, and a reader must
/// know that one of them is wrong.
fn disagreements(record: &Record, reduced: &Reduced) -> Vec<RecordedWarning> {
    let found = reduced.curves.iter().filter_map(|curve| {
        let run = record.runs.iter().find(|r| r.index == curve.run)?;
        let summary = run.summary(curve.metric)?;
        let left_out: u64 = run.rounds.iter().map(|r| r.samples_in_histogram_only).sum();
        let of = format!("{} {}", run.label, curve.metric.name());
        let (figures_ns, sample_ns) = (summary.max.0, curve.values.last().copied());
        if left_out > 0 {
            Some(Warning::CurveIncomplete { of, left_out, shown: curve.count })
        } else if curve.count != summary.count {
            let (figures, samples) = (summary.count, curve.count);
            Some(Warning::SampleCountDiffers { of, figures, samples })
        } else {
            let sample_ns = sample_ns.filter(|sample_ns| !same(*sample_ns, figures_ns))?;
            Some(Warning::MaximumDiffers { of, figures_ns, sample_ns })
        }
    });
    found.map(|warning| (&warning).into()).collect()
}

/// Equal but for the rounding of a difference of two stamps (1/64 ns after a day).
fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 0.1
}

/// Text of a record as text of the page or as a quoted attribute.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters are not allowed in HTML text; these would show as nothing.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            // Overrides of direction could make a text read as another.
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// JSON that cannot end its script element. `<` occurs in JSON only within
/// strings, where the escape means the same.
fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_record_stays_text() {
        let evil = "<img src=x onerror=\"alert('1')\">&\u{0}\u{202e}";
        let safe = "&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;\u{fffd}\u{fffd}";
        assert_eq!(escape(evil), safe);
    }

    #[test]
    fn json_cannot_end_its_script() -> Result<(), serde_json::Error> {
        let evil = "</script><script>alert(1)</script><!--";
        let json = script_json(&serde_json::to_string(evil)?);
        assert!(!json.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&json)?, evil);
        Ok(())
    }

    #[test]
    fn no_script_of_the_viewer_can_end_its_element() {
        for script in SCRIPTS.iter().chain([&UPLOT]) {
            let lower = script.to_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("<!--"));
        }
        assert!(!CSS.to_lowercase().contains("</style"));
    }
}
