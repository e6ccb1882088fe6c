//! Studies are what their source did: their cases against the settings of the publication.

use super::*;
use crate::pattern::registry;
use crate::plan::study::Series;
use crate::record::schema::CaseRecord;
use crate::shipped;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a source did, for some series of a study. Names of `case` are those of `record.json`, with
/// dots between; `any.` before one is of one case at least. Names of `granted` are those of
/// `effective_settings`. `differs` says what the study does otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    study: String,
    /// None: all that the study has.
    #[serde(default)]
    series: Vec<String>,
    says: String,
    differs: Option<String>,
    rounds: Option<u32>,
    #[serde(default)]
    sizes: Vec<f64>,
    #[serde(default)]
    rates: Vec<f64>,
    #[serde(default)]
    values: Vec<f64>,
    #[serde(default)]
    case: BTreeMap<String, Value>,
    /// What `tests/it/verbs.rs` looks for in records.
    #[serde(default)]
    #[expect(dead_code, reason = "read elsewhere")]
    granted: BTreeMap<String, String>,
    /// The same of the server.
    #[serde(default)]
    #[expect(dead_code, reason = "read elsewhere")]
    granted_server: BTreeMap<String, String>,
    /// Why nothing that is granted can be held against the source.
    #[serde(default)]
    #[expect(dead_code, reason = "read elsewhere")]
    ungranted: Option<String>,
}

fn sources() -> Vec<Source> {
    let texts = [
        include_str!("../../../tests/support/sources/dabc.json"),
        include_str!("../../../tests/support/sources/gamess.json"),
        include_str!("../../../tests/support/sources/homa.json"),
        include_str!("../../../tests/support/sources/mpi.json"),
        include_str!("../../../tests/support/sources/potter.json"),
        include_str!("../../../tests/support/sources/ramcloud.json"),
        include_str!("../../../tests/support/sources/villas.json"),
    ];
    texts.iter().flat_map(|text| serde_json::from_str::<Vec<Source>>(text).unwrap()).collect()
}

/// The plan of a shipped study.
fn plan_of(name: &str) -> Plan {
    let text = shipped::text(&STUDIES, name);
    let parsed = file::parse(&registry::names(), name, text).unwrap();
    let requests = requests(&parsed, None).unwrap();
    let (name, source) = (name.into(), parsed.source.clone());
    study::plan(Study { name, source, ..Study::default() }, &requests).unwrap()
}

/// What a dotted name says of a case, as its record has it.
fn of_record<'a>(record: &'a Value, name: &str) -> Option<&'a Value> {
    // Names of settings have dashes and no dots.
    name.split('.').try_fold(record, |value, part| value.get(part))
}

fn axis(cases: &[&Case], of: impl Fn(&Case) -> Option<f64>) -> Vec<f64> {
    let mut all: Vec<f64> = cases.iter().filter_map(|case| of(case)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

impl Source {
    fn check(&self, plan: &Plan, series: &Series) {
        let place = format!("{}, {}", self.study, series.name);
        let cases: Vec<&Case> =
            series.cases.iter().map(|number| &plan.cases[*number as usize]).collect();
        let shown: Vec<&Case> =
            cases.iter().copied().filter(|case| !case.profile().is_preparation).collect();
        let records: Vec<Value> = cases
            .iter()
            .map(|case| serde_json::to_value(CaseRecord::from(*case)).unwrap())
            .collect();
        for (name, expected) in &self.case {
            let is = |record: &Value, name: &str| of_record(record, name) == Some(expected);
            let fits = match name.strip_prefix("any.") {
                Some(name) => records.iter().any(|record| is(record, name)),
                None => records.iter().all(|record| is(record, name)),
            };
            assert!(fits, "{place}: {name} is not {expected}: {}", records[0]);
        }
        assert!(self.rounds.is_none_or(|rounds| rounds == plan.rounds.most), "{place}: rounds");
        for (expected, found) in [
            (&self.sizes, axis(&shown, |case| Some(case.size.0 as f64))),
            (&self.rates, axis(&shown, |case| case.schedule.rate().map(|rate| rate.0))),
            (&self.values, axis(&shown, |case| case.profile().values.map(f64::from))),
        ] {
            assert!(expected.is_empty() || *expected == found, "{place}: {found:?}");
        }
    }
}

#[test]
fn every_series_of_a_study_does_what_its_source_did() {
    let sources = sources();
    for &(name, text) in STUDIES.iter() {
        let plan = plan_of(name);
        let study = plan.study.as_ref().unwrap();
        let own: Vec<&Source> = sources.iter().filter(|source| source.study == *name).collect();
        for source in &own {
            let known = |name: &String| study.series.iter().any(|series| series.name == *name);
            assert!(source.series.iter().all(known), "{name}: {:?}", source.series);
            assert!(!source.says.is_empty());
            // Who reads the study is told.
            let explains = source.differs.is_none() || text.contains("\n# ");
            assert!(explains, "{name}: no comment says that {:?}", source.differs);
        }
        for series in &study.series {
            let covers = |source: &&&Source| {
                source.series.is_empty() || source.series.contains(&series.name)
            };
            let covering: Vec<&&Source> = own.iter().filter(covers).collect();
            let expected = usize::from(study.source.is_some());
            assert_eq!(covering.len(), expected, "{name}, {}: entries in sources", series.name);
            covering.iter().for_each(|source| source.check(&plan, series));
        }
    }
    assert!(sources.iter().all(|source| STUDIES.iter().any(|(name, _)| *name == source.study)));
}
