//! Records of runs that were killed.

use std::collections::BTreeMap;
use wiregauge_analysis::recovered::*;
use wiregauge_base::warning::Warning;
use wiregauge_figures::record::journal::SavedRound;
use wiregauge_figures::record::schema::{ClockOffset, RateFigure, Round, Run};
use wiregauge_figures::record::schema::{Counts, RecordedWarning};
use wiregauge_sample::RoundSamples;
use wiregauge_sample::{Flags, Sample};
use wiregauge_stats::Metric;
use wiregauge_stats::{Rate, RateMetric};

/// The run of a plan before its first round.
fn begun() -> Run {
    let request = wiregauge_patterns::latency::request(Default::default());
    let plan = request.plan().unwrap();
    let analysis = wiregauge_patterns::registry::analysis("latency").unwrap();
    let so_far = wiregauge_analysis::pattern::RunSoFar::new(0, &plan.cases[0], analysis, &[], 1);
    so_far.without_rounds(&plan)
}

/// A round of the first run.
fn saved(index: u32) -> SavedRound {
    let counts = Counts { sent: 10, received: 10, ..Counts::default() };
    SavedRound {
        run: 0,
        round: Round { index, counts, ..Round::default() },
        at: String::new(),
        metrics: Vec::new(),
        rates: Vec::new(),
        warnings: Vec::new(),
        clock_fault: None,
        enough: None,
        stopped: None,
    }
}

/// What a run of `--until`, of 6 to 30 rounds, has left after so many of its rounds.
fn recovered(rounds: u32, enough: Option<u32>, stopped: Option<&str>) -> Run {
    let mut runs = [begun()];
    let of_run = |index| {
        let is_last = index + 1 == rounds;
        SavedRound {
            // The first six rounds say how many are enough.
            enough: enough.filter(|_| index >= 5),
            stopped: stopped.filter(|_| is_last).map(str::to_string),
            ..saved(index)
        }
    };
    let planned = take_all(&mut runs, 6, (0..rounds).map(of_run).collect());
    let [mut run] = runs;
    assert_eq!(finish(&mut run, &Series::new(), 1e4, planned[0]), None);
    run
}

fn sentences(run: &Run) -> Vec<&str> {
    run.warnings.iter().map(|warning| warning.sentence.as_str()).collect()
}

#[test]
fn a_run_that_needed_more_than_the_least_rounds_is_incomplete_by_what_it_needed() {
    let run = recovered(17, Some(24), None);
    assert!(!run.complete);
    assert_eq!(run.stopped, "the run ended early; 17 rounds were saved");
    assert_eq!(sentences(&run), ["17 of 24 rounds were completed: the run ended early"]);
    assert_eq!(
        sentences(&recovered(4, None, None))[0],
        "4 of 6 rounds were completed: the run ended early"
    );
}

#[test]
fn a_run_whose_rounds_were_all_saved_is_complete() {
    let run = recovered(24, Some(24), Some("after 24 rounds, as asked"));
    assert!(run.complete && run.warnings.is_empty(), "{:?}", run.warnings);
    assert_eq!((run.stopped.as_str(), run.rounds.len()), ("after 24 rounds, as asked", 24));
    let failed = recovered(24, Some(24), None);
    assert!(!failed.complete && failed.warnings.is_empty(), "24 of 24 are not too few");
    let early = recovered(7, Some(24), Some("after 7 rounds, as asked"));
    assert!(early.complete && early.warnings.is_empty(), "{:?}", early.warnings);
}

#[test]
fn samples_count_for_their_own_round_by_the_metrics_that_it_has() {
    let none = f64::NAN;
    let samples = |run, round, ns: f64, flags| {
        let sample = Sample::new(0, 8, [none, 0.0, none, ns, none], flags);
        Ok(RoundSamples { run, round, samples: vec![sample] })
    };
    let rounds = [
        SavedRound { metrics: vec![Metric::Rtt], ..saved(0) },
        SavedRound { metrics: vec![Metric::HalfRtt], ..saved(1) },
        SavedRound { metrics: vec![Metric::Rtt], ..saved(2) },
    ];
    let kept = Flags::default();
    let all = [
        samples(0, 1, 30.0, kept),
        samples(0, 0, 10.0, kept),
        // A round of warm-up alone, one that was not saved, and a run that the plan has not.
        samples(0, 2, 50.0, Flags::WARMUP),
        samples(1, 0, 60.0, kept),
        samples(2, 0, 70.0, kept),
    ];
    let found = series_of_runs(2, &rounds, all.into_iter()).unwrap();
    let first = [(Metric::Rtt, vec![vec![10.0]]), (Metric::HalfRtt, vec![vec![15.0]])];
    assert_eq!(found, [BTreeMap::from(first), BTreeMap::new()]);
}

#[test]
fn each_line_adds_its_rounds_to_the_rate_of_their_metric_and_new_warnings() {
    let rate = |metric, round: f64| RateFigure {
        metric,
        unit: "1/s".into(),
        rate: Rate {
            value: round,
            interval: None,
            basis: wiregauge_stats::Basis::OneRound,
            rounds: vec![round],
        },
    };
    let warning = |done| {
        let why = String::new();
        RecordedWarning::from(&Warning::Incomplete { done, planned: 6, why })
    };
    let mut run = begun();
    for (number, warnings) in
        [vec![warning(1)], vec![warning(1), warning(2)]].into_iter().enumerate()
    {
        let round = number as f64;
        let rates =
            vec![rate(RateMetric::MessageRate, round), rate(RateMetric::Bandwidth, 10.0 + round)];
        take(&mut run, SavedRound { rates, warnings, ..saved(number as u32) });
    }
    let rounds: Vec<&[f64]> = run.rates.iter().map(|of| of.rate.rounds.as_slice()).collect();
    assert_eq!(rounds, [[0.0, 1.0], [10.0, 11.0]]);
    assert_eq!(run.warnings, [warning(1), warning(2)]);
}

#[test]
fn the_headline_comes_first_and_what_the_clocks_may_be_wrong_by_is_dropped() {
    let shown = |one_way_ns: f64| {
        let mut run = begun();
        let clock = ClockOffset { bound_ns: 100.0, ..ClockOffset::default() };
        let mut saved = saved(0);
        saved.round.clock = Some(clock);
        take(&mut run, saved);
        run.headline = "one_way".into();
        let rounds = |ns: f64| vec![vec![ns; 100]];
        let metrics = [(Metric::Rtt, 100.0), (Metric::OneWay, one_way_ns), (Metric::Post, 5.0)];
        let series = metrics.map(|(metric, ns)| (metric, rounds(ns))).into();
        assert_eq!(finish(&mut run, &series, 1e4, 1), None);
        run.figures.iter().map(|figure| figure.metric).collect::<Vec<_>>()
    };
    let others = [Metric::Rtt, Metric::Post];
    assert_eq!(shown(100.0), others);
    let all = shown(101.0);
    assert_eq!((all[0], &all[1..]), (Metric::OneWay, &others[..]));
}
