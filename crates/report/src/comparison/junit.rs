//! Verdicts as JUnit's XML, which CI systems show as tests: a limit of a pair of runs is a test
//! case. An inconclusive one is skipped, or failed where it is to fail.

use super::{Comparison, JudgedLimit};
use crate::escape::escaped;
use wiregauge_figures::record::schema::Record;
use wiregauge_stats::Verdict;

/// The whole file.
pub fn text(all: &Comparison, record: &Record, strict: bool) -> String {
    let is_failed = |one: &&JudgedLimit| match one.verdict() {
        Verdict::Exceeded => true,
        Verdict::Inconclusive => strict,
        Verdict::Held => false,
    };
    let open = all.limits.iter().filter(|one| one.verdict() == Verdict::Inconclusive).count();
    let (tests, failures) = (all.limits.len(), all.limits.iter().filter(is_failed).count());
    let skipped = if strict { 0 } else { open };
    let case = |one: &JudgedLimit| {
        let [name, class, why] = [&one.limit, &one.runs, &one.sentence].map(|text| escaped(text));
        let kind = one.verdict().name();
        let what = match (is_failed(&one), one.verdict()) {
            (true, _) => format!("<failure type=\"{kind}\" message=\"{why}\"/>"),
            (false, Verdict::Inconclusive) => format!("<skipped message=\"{why}\"/>"),
            (false, _) => format!("<system-out>{why}</system-out>"),
        };
        format!("    <testcase classname=\"{class}\" name=\"{name}\">{what}</testcase>\n")
    };
    let cases: String = all.limits.iter().map(case).collect();
    let said: String = all
        .answers
        .iter()
        .map(|answer| format!("{}: {}\n", escaped(&answer.runs), escaped(&answer.sentence)))
        .collect();
    let (started, host) = (escaped(&record.started), escaped(&record.environment.host));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites>\n  \
         <testsuite name=\"wiregauge\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" \
         skipped=\"{skipped}\" timestamp=\"{started}\" hostname=\"{host}\">\n\
         {cases}    <system-out>{said}</system-out>\n  \
         </testsuite>\n\
         </testsuites>\n"
    )
}
