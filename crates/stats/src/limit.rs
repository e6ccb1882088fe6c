//! Limits that a run or a comparison must keep: `half_rtt.p99>+10%`, `one_way.max>100us`.
//!
//! A limit names a figure, the side on which it fails, and a bound: `+10%` or `+2us` against the
//! run that is compared with, `100us` for the figure itself. [`super::verdict`] judges it.

use super::compare::Estimate;
use super::quantile::median_interval;
use super::{
    Interval, Metric, QUANTILES, Rate, RateMetric, RateUnit, RoundSummary, Summary, Value,
};
use std::fmt;
use std::str::FromStr;
use wiregauge_base::units::quantile_name;

/// Rounds from which on a maximum or a minimum has an interval. The median of what rounds' maxima
/// are drawn from lies outside all n of them with probability 2^-n on each side: 3.1 % of 5 rounds,
/// 1.6 % of 6, which is within the 2.5 % of a 95 % interval. Of 2 rounds a limit that holds exactly
/// would be exceeded one time in 4.
const LEAST_ROUNDS_OF_EXTREMES: u32 = 6;

/// Rounds from which on any other figure has an interval that knows how rounds differ.
const LEAST_ROUNDS: u32 = 2;

/// One limit, as parsed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// What is looked at.
    pub figure: Figure,
    /// The side on which it fails.
    pub side: Side,
    /// Where it fails.
    pub bound: Bound,
}

/// A figure that can be limited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A quantile of a distribution; p is one of [`QUANTILES`].
    Quantile(Metric, f64),
    /// The largest sample, infinite where one was lost.
    Max(Metric),
    /// The smallest sample.
    Min(Metric),
    /// A rate.
    Rate(RateMetric),
}

/// The side of a bound on which a limit fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `>`: what lies above fails.
    Above,
    /// `<`: what lies below fails.
    Below,
}

/// Where a limit fails. Differences are signed: `-5%` is -0.05.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A share of the first run's figure.
    Relative(f64),
    /// A difference to it, in the unit of the record: ns, or that of the rate.
    Difference(f64),
    /// The figure itself, in the same unit.
    Absolute(f64),
}

/// The figures of one run, wherever they are kept.
pub trait Figures {
    /// The distribution of a metric.
    fn summary(&self, metric: Metric) -> Option<&Summary>;
    /// A rate.
    fn rate(&self, metric: RateMetric) -> Option<&Rate>;
}

impl Limit {
    /// Whether it is one for the difference of two runs.
    pub fn compares(&self) -> bool {
        !matches!(self.bound, Bound::Absolute(_))
    }
}

impl Side {
    /// Whether a value lies on the side on which a limit fails; the bound itself does not.
    pub fn is_beyond(self, x: f64, bound: f64) -> bool {
        match self {
            Side::Above => x > bound,
            Side::Below => x < bound,
        }
    }
}

/// The quantiles of a latency that stand for it: the middle and the tail.
const HEADLINE_QUANTILES: [f64; 2] = [0.5, 0.99];

impl Figure {
    /// The figures that answer the question of a run, by the name of its headline: p50 and p99 of a
    /// metric, or a rate.
    pub fn of_headline(headline: &str) -> Vec<Figure> {
        match (Metric::from_name(headline), RateMetric::from_name(headline)) {
            (Some(metric), _) => HEADLINE_QUANTILES.map(|p| Figure::Quantile(metric, p)).to_vec(),
            (_, Some(rate)) => vec![Figure::Rate(rate)],
            _ => Vec::new(),
        }
    }

    /// Whether a run measured what it is of.
    pub fn is_measured(self, figures: &dyn Figures) -> bool {
        match self {
            Figure::Quantile(m, _) | Figure::Max(m) | Figure::Min(m) => {
                figures.summary(m).is_some()
            }
            Figure::Rate(metric) => figures.rate(metric).is_some(),
        }
    }

    /// Rounds behind it.
    pub fn rounds(self, figures: &dyn Figures) -> u32 {
        let rounds = match self {
            Figure::Quantile(m, _) | Figure::Max(m) | Figure::Min(m) => {
                figures.summary(m).map(|summary| summary.rounds.len())
            }
            Figure::Rate(metric) => figures.rate(metric).map(|rate| rate.rounds.len()),
        };
        rounds.map_or(0, |rounds| rounds as u32)
    }

    /// The metric or rate that it is of.
    pub fn metric(self) -> &'static str {
        match self {
            Figure::Quantile(m, _) | Figure::Max(m) | Figure::Min(m) => m.name(),
            Figure::Rate(metric) => metric.name(),
        }
    }

    /// Whether it is a maximum or a minimum, of which more rounds bring a more extreme one.
    pub fn is_extreme(self) -> bool {
        matches!(self, Figure::Max(_) | Figure::Min(_))
    }

    /// The fewest rounds with which it has an interval.
    pub fn least_rounds(self) -> u32 {
        if self.is_extreme() { LEAST_ROUNDS_OF_EXTREMES } else { LEAST_ROUNDS }
    }

    /// Returns the figure and its interval in one run; `None` where it is not shown.
    ///
    /// The interval of a maximum is that of the median of the rounds' maxima, by their order
    /// statistics, extended to the maximum of all: it covers, with 95 %, what half of all rounds
    /// exceed. There is none for fewer than `LEAST_ROUNDS_OF_EXTREMES` rounds. The same holds for
    /// a minimum.
    pub fn estimate(self, figures: &dyn Figures) -> Option<Estimate> {
        type OfRound = fn(&RoundSummary) -> Value;
        let extreme = |metric: Metric, of_all: fn(&Summary) -> Value, of: OfRound| {
            let summary = figures.summary(metric)?;
            let value = of_all(summary);
            // A round without samples has no extremes.
            let rounds = summary.rounds.iter().map(|round| of(round).0).filter(|ns| !ns.is_nan());
            let rounds = Some(rounds.collect::<Vec<f64>>());
            let enough = rounds.filter(|rounds| rounds.len() >= LEAST_ROUNDS_OF_EXTREMES as usize);
            let levels = enough.and_then(|rounds| median_interval(&rounds));
            let interval = levels.map(|levels| levels.union(Interval { low: value, high: value }));
            (!value.0.is_nan()).then(|| Estimate::from((value.0, interval)))
        };
        match self {
            Figure::Quantile(metric, p) => figures.summary(metric)?.estimate(p),
            Figure::Max(m) => extreme(m, |all| all.max, |round| round.max),
            Figure::Min(m) => extreme(m, |all| all.min, |round| round.min),
            Figure::Rate(metric) => figures.rate(metric)?.estimate(),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Figure::Quantile(m, p) => write!(f, "{}.{}", m.name(), quantile_name(*p)),
            Figure::Max(m) => write!(f, "{}.max", m.name()),
            Figure::Min(m) => write!(f, "{}.min", m.name()),
            Figure::Rate(m) => f.write_str(m.name()),
        }
    }
}

impl FromStr for Figure {
    /// One sentence that says what is allowed.
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        parse_figure(word)
    }
}

impl FromStr for Limit {
    /// One sentence that says what is allowed.
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        parse(typed).map_err(|wrong| format!("limit '{typed}': {wrong}"))
    }
}

fn parse(typed: &str) -> Result<Limit, String> {
    let at = typed
        .find(['<', '>'])
        .ok_or("no '>' or '<': use FIGURE>BOUND or FIGURE<BOUND, such as half_rtt.p99>+10%")?;
    let side = if typed[at..].starts_with('>') { Side::Above } else { Side::Below };
    let figure = parse_figure(typed[..at].trim())?;
    let bound = parse_bound(typed[at + 1..].trim(), figure)?;
    let signed = match bound {
        Bound::Relative(x) | Bound::Difference(x) => Some(x),
        Bound::Absolute(_) => None,
    };
    match (side, signed) {
        (Side::Above, Some(x)) if x.is_sign_negative() => {
            Err("'>' limits an increase, such as >+10%: use '<' for a decrease, such as <-10%"
                .into())
        }
        (Side::Below, Some(x)) if x.is_sign_positive() => {
            Err("'<' limits a decrease, such as <-5%: use '>' for an increase, such as >+5%".into())
        }
        _ => Ok(Limit { figure, side, bound }),
    }
}

fn parse_figure(word: &str) -> Result<Figure, String> {
    let Some((metric, figure)) = word.split_once('.') else {
        if let Some(rate) = RateMetric::from_name(word) {
            return Ok(Figure::Rate(rate));
        }
        if Metric::from_name(word).is_some() {
            return Err(format!("'{word}' is a distribution: add a figure, one of {FIGURES}"));
        }
        if ["max", "min"].contains(&word) || QUANTILES.iter().any(|p| quantile_name(*p) == word) {
            return Err(format!(
                "'{word}' is a figure of a metric: did you mean half_rtt.{word} (latency), \
                 one_way.{word} (oneway, stream) or response.{word} (load, rpc)?"
            ));
        }
        return Err(unknown_metric(word));
    };
    let metric = Metric::from_name(metric).ok_or_else(|| unknown_metric(metric))?;
    match figure {
        "max" => Ok(Figure::Max(metric)),
        "min" => Ok(Figure::Min(metric)),
        _ => QUANTILES
            .into_iter()
            .find(|p| quantile_name(*p) == figure)
            .map(|p| Figure::Quantile(metric, p))
            .ok_or_else(|| format!("unknown figure '{figure}': use {FIGURES}")),
    }
}

const FIGURES: &str = "p10, p50, p90, p99, p99.9, p99.99, min and max";

fn unknown_metric(word: &str) -> String {
    let metrics = Metric::ALL.iter().map(|metric| metric.name()).collect::<Vec<_>>().join(", ");
    let rates = RateMetric::ALL.iter().map(|rate| rate.name()).collect::<Vec<_>>().join(", ");
    format!("'{word}' is not a metric: use {metrics}, or the rates {rates}")
}

const SPANS: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const MESSAGES: &[(&str, f64)] = &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6)];
const BYTES: &[(&str, f64)] = &[
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("Mb/s", 1e6 / 8.0),
    ("Gb/s", 1e9 / 8.0),
];

const NUMBERS: &[(&str, f64)] = &[("", 1.0)];
const SHARES: &[(&str, f64)] = &[("", 1.0), ("%", 0.01)];

impl Figure {
    /// The units in which a bound can be written, each with what it is in the record.
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Figure::Quantile(..) | Figure::Max(_) | Figure::Min(_) => SPANS,
            Figure::Rate(rate) => match rate.unit() {
                RateUnit::BytesPerSecond => BYTES,
                RateUnit::MessagesPerSecond => MESSAGES,
                RateUnit::Nanoseconds => SPANS,
                RateUnit::Share => SHARES,
                RateUnit::PerPoll | RateUnit::PerRead | RateUnit::Ratio => NUMBERS,
            },
        }
    }
}

fn parse_bound(word: &str, figure: Figure) -> Result<Bound, String> {
    let units = figure.units();
    let number = word.trim_end_matches(|c: char| c.is_alphabetic() || matches!(c, '%' | '/'));
    let (number, unit) = (number.trim(), word[number.len()..].trim());
    let signed = number.starts_with(['+', '-']);
    let value = number.parse::<f64>().ok().filter(|v| v.is_finite());
    let value =
        value.ok_or_else(|| format!("invalid number '{number}': use one such as +10% or 100us"))?;
    if unit == "%" && signed {
        return Ok(Bound::Relative(value / 100.0));
    }
    let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit) else {
        if unit == "%" {
            return Err(format!(
                "'{word}' needs a sign: +{word} for an increase, -{word} for a decrease"
            ));
        }
        let name = |(name, _): &(&'static str, f64)| if name.is_empty() { "no unit" } else { name };
        let allowed: Vec<&str> = units.iter().map(name).filter(|name| *name != "%").collect();
        let allowed = allowed.join(", ");
        return Err(format!("invalid unit '{unit}' of {figure}: use {allowed} or %"));
    };
    let value = value * scale;
    Ok(if signed { Bound::Difference(value) } else { Bound::Absolute(value) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summarize;

    #[test]
    fn a_bound_itself_is_not_beyond_it() {
        for side in [Side::Above, Side::Below] {
            assert!(!side.is_beyond(1.0, 1.0));
        }
        assert!(Side::Above.is_beyond(1.1, 1.0) && Side::Below.is_beyond(0.9, 1.0));
    }

    #[test]
    fn a_headline_is_the_middle_and_the_tail_of_a_metric_or_a_rate() {
        let quantile = |p| Figure::Quantile(Metric::Rtt, p);
        assert_eq!(Figure::of_headline("rtt"), [quantile(0.5), quantile(0.99)]);
        let rate = RateMetric::Bandwidth;
        assert_eq!(Figure::of_headline(rate.name()), [Figure::Rate(rate)]);
        assert_eq!(Figure::of_headline("of nothing"), []);
    }

    /// Round trips of one run, and no rates.
    struct RoundTrips(Summary);

    impl Figures for RoundTrips {
        fn summary(&self, metric: Metric) -> Option<&Summary> {
            (metric == Metric::Rtt).then_some(&self.0)
        }

        fn rate(&self, _: RateMetric) -> Option<&Rate> {
            None
        }
    }

    /// A run of rounds with these largest samples, in each one a smaller one by 0.5.
    fn of_largest(largest: &[f64]) -> RoundTrips {
        let round = |most: &f64| if most.is_nan() { vec![] } else { vec![*most, most - 0.5] };
        RoundTrips(summarize(&largest.iter().map(round).collect::<Vec<_>>(), 1e9))
    }

    #[test]
    fn an_extreme_has_the_interval_of_the_rounds_extremes_up_to_its_own() {
        let of = |figure: Figure, largest: &[f64]| {
            let Estimate { value, interval, .. } = figure.estimate(&of_largest(largest)).unwrap();
            (value, interval.map(|Interval { low, high }| [low.0, high.0]))
        };
        let (max, min) = (Figure::Max(Metric::Rtt), Figure::Min(Metric::Rtt));
        // The median of nine lies between the second and the eighth, but for 2 * 10/2^9 = 3.9 %.
        let nine = [9.0, 2.0, 7.0, 4.0, 5.0, 6.0, 3.0, 8.0, 1.0];
        assert_eq!(of(max, &nine), (9.0, Some([2.0, 9.0])));
        assert_eq!(of(min, &nine), (0.5, Some([0.5, 7.5])));
        // That of six between the first and the last, but for 2/2^6 = 3.1 %; of five but for 6.3 %.
        assert_eq!(of(max, &nine[..6]), (9.0, Some([2.0, 9.0])));
        assert_eq!(of(max, &nine[..5]), (9.0, None));
        // A round without samples is none.
        let of_five = [&nine[..5], &[f64::NAN]].concat();
        assert_eq!((of(max, &of_five), of(min, &of_five)), ((9.0, None), (1.5, None)));
        assert_eq!(max.estimate(&of_largest(&[f64::NAN])), None);
    }

    #[test]
    fn a_figure_is_measured_where_its_metric_is() {
        let run = of_largest(&[1.0, 2.0]);
        for (figure, rounds) in [("rtt.p50", 2), ("rtt.max", 2), ("rtt.min", 2), ("post.p50", 0)] {
            let figure: Figure = figure.parse().unwrap();
            assert_eq!((figure.is_measured(&run), figure.rounds(&run)), (rounds > 0, rounds));
        }
        let bandwidth = Figure::Rate(RateMetric::Bandwidth);
        assert!(!bandwidth.is_measured(&run) && bandwidth.rounds(&run) == 0);
        assert!(bandwidth.estimate(&run).is_none());
    }

    #[test]
    fn a_limit_of_a_figure_itself_compares_no_runs() {
        let compares = |limit: &str| limit.parse::<Limit>().unwrap().compares();
        assert!(compares("rtt.p50>+10%") && compares("rtt.p50>+2us") && !compares("rtt.p50>2us"));
    }

    #[test]
    fn limits_are_parsed_into_their_parts() {
        let quantile = |p| Figure::Quantile(Metric::HalfRtt, p);
        let (above, below) = (Side::Above, Side::Below);
        let cases = [
            ("half_rtt.p99>+10%", quantile(0.99), above, Bound::Relative(0.1)),
            ("half_rtt.p99.99 > +2us", quantile(0.9999), above, Bound::Difference(2e3)),
            ("half_rtt.p50<-1.5ms", quantile(0.5), below, Bound::Difference(-1.5e6)),
            ("one_way.max>100us", Figure::Max(Metric::OneWay), above, Bound::Absolute(1e5)),
            ("bandwidth<-5%", Figure::Rate(RateMetric::Bandwidth), below, Bound::Relative(-0.05)),
            (
                "bandwidth<10Gb/s",
                Figure::Rate(RateMetric::Bandwidth),
                below,
                Bound::Absolute(1.25e9),
            ),
            (
                "message_rate<1M/s",
                Figure::Rate(RateMetric::MessageRate),
                below,
                Bound::Absolute(1e6),
            ),
        ];
        for (typed, figure, side, bound) in cases {
            assert_eq!(typed.parse(), Ok(Limit { figure, side, bound }), "{typed}");
        }
    }

    #[test]
    fn a_limit_of_a_rate_is_in_the_unit_of_the_rate() {
        let bound = |typed: &str| typed.parse::<Limit>().map(|limit| limit.bound);
        for (typed, known) in [
            ("cpu_client>200ns", Bound::Absolute(200.0)),
            ("buffer_time>+2us", Bound::Difference(2e3)),
            ("ceiling<10GB/s", Bound::Absolute(1e10)),
            ("achieved_rate<1k/s", Bound::Absolute(1e3)),
            ("slowdown>2", Bound::Absolute(2.0)),
            ("slowdown>+0.5", Bound::Difference(0.5)),
            ("empty_polls>3", Bound::Absolute(3.0)),
            ("completions_per_poll<1.5", Bound::Absolute(1.5)),
            ("missed>1%", Bound::Absolute(0.01)),
            ("missed>0.01", Bound::Absolute(0.01)),
            ("missed>+10%", Bound::Relative(0.1)),
        ] {
            assert_eq!(bound(typed), Ok(known), "{typed}");
        }
        for (typed, part) in [
            ("cpu_client>1k/s", "invalid unit 'k/s' of cpu_client: use ns, us, ms, s or %"),
            ("slowdown>2us", "invalid unit 'us' of slowdown: use no unit or %"),
            ("ceiling<1M/s", "invalid unit 'M/s' of ceiling: use B/s"),
            ("missed>1us", "invalid unit 'us' of missed: use no unit or %"),
            ("slowdown>10%", "'10%' needs a sign: +10%"),
        ] {
            let refused = bound(typed).unwrap_err();
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn a_wrong_limit_is_refused_in_one_sentence_that_says_what_is_allowed() {
        let cases = [
            ("half_rtt.p99", "no '>' or '<'"),
            ("rtt>+10%", "'rtt' is a distribution: add a figure, one of p10"),
            ("latency.p50>+10%", "'latency' is not a metric: use rtt, half_rtt"),
            ("rtt.p95>+10%", "unknown figure 'p95': use p10, p50"),
            ("rtt.p50>10%", "'10%' needs a sign: +10%"),
            ("rtt.p50>-10%", "'>' limits an increase"),
            ("bandwidth<+5%", "'<' limits a decrease"),
            ("rtt.p50>+2kg", "invalid unit 'kg' of rtt.p50: use ns, us, ms, s or %"),
            ("rtt.p50>", "invalid number ''"),
            ("rtt.p50>+infs", "invalid number '+'"),
            ("rtt.p50>+1e999us", "invalid number '+1e999'"),
            ("µ.p50>+1µs", "'µ' is not a metric"),
        ];
        for (typed, part) in cases {
            let said = typed.parse::<Limit>().unwrap_err().to_string();
            assert!(said.starts_with(&format!("limit '{typed}': {part}")), "{said}");
            assert!(!said.contains('\n') && !said.replace("e.g. ", "").contains(". "), "{said}");
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_that_is_typed_panics(
            typed in "(rtt|one_way|bandwidth|\\PC{0,4})[.]?(p50|max|\\PC{0,4})[<>]?\\PC{0,8}",
        ) {
            let _ = typed.parse::<Limit>();
        }
    }
}
