//! The names that columns of tables can have, by which a misspelt one is refused before a run.
//!
//! Which of them a table has follows from what was measured; a name is refused here only if no
//! table of any command can have it.

use wiregauge_figures::view::byte_rate::ByteRateUnit;
use wiregauge_stats::{Metric, RateMetric};

/// Heads of the tables that are printed, parted by commas, but for names of metrics and units.
const HEADS: &str = "\
    CPU, CPUs, IQR within, a pair, above, achieved, after slot, all pairs, alone, answered, at \
    once, before, before the first, beside, buffer, case, cause, ceiling, change %, changed \
    at, changes, client, clients, completions/poll, congestor, connections, count, covered %, \
    delivered, differs, empty polls/read, end, every, exchanges, steps, (logarithmic), factor, \
    fairness, figure, first, from, full polls/read, gaps, held up, host, in, includes, \
    interrupt, k msg/s, k operations, kind, known to, last, late, least matching, load, \
    longest, lost, lost %, lost at, matchings, max, mean, measured on, metric, min, missed %, \
    most, n, node, nodes, notes, object, of bound, of rounds, offered, offset, operation, \
    ours, outcome, overlap %, pace, packets, pair, pairs, part, parts, pattern, per s, ports, \
    probe, published in, queues, rail, ranks, rate, ratio, receives, recorded %, records, \
    reordered, role, rounds, run, rx, schedule, sd between, sends, sent, series, server, \
    service, severity, share, short, shortest, size, skew, skipped, slowdown, source, stands \
    out by, steps/s, stopped because, sum, threads, to, transport, true, tx, under, \
    unfinished, unit, unloaded, unsent, value, values, wait, ways, window, workload, wrong, \
    drift, drift ppm, ±, us, ns, ms, s, B, KiB, %";

/// Returns a name as it is compared: in small letters, without spaces and signs between words.
pub(super) fn plain_name(text: &str) -> String {
    text.to_lowercase().chars().filter(|c| c.is_alphanumeric() || "./%".contains(*c)).collect()
}

/// Returns how far what was typed is from a name.
pub(super) fn distance(typed: &str, name: &str) -> usize {
    strsim::damerau_levenshtein(&plain_name(typed), &plain_name(name))
}

/// Checks a name that was typed.
///
/// # Errors
/// No table can have it: a sentence with the name that was meant.
pub(super) fn check(typed: &str) -> Result<(), String> {
    let known: Vec<String> = names().flat_map(words).collect();
    if words(typed).iter().any(|word| is_quantile(word) || known.contains(word))
        || names().any(|name| distance(typed, name) == 0)
    {
        return Ok(());
    }
    let near = names().chain(["p50", "p99", "p99.9"]).map(|name| (distance(typed, name), name));
    let near = near.min().filter(|(distance, _)| *distance <= (typed.len() / 3).max(1));
    let near = near.map_or_else(String::new, |(_, name)| format!(" (did you mean '{name}'?)"));
    Err(format!(
        "no table has '{typed}'{near}: use all, or names from the heads of tables, such as \
         p50,p99.9,lost"
    ))
}

/// Returns the names of columns that are known before a run, but for quantiles.
fn names() -> impl Iterator<Item = &'static str> {
    HEADS
        .split(", ")
        .chain(Metric::ALL.iter().map(|metric| metric.name()))
        .chain(RateMetric::ALL.iter().map(|metric| metric.name()))
        .chain(ByteRateUnit::ALL.iter().map(|unit| unit.name()))
}

/// Returns the words of a name.
fn words(name: &str) -> Vec<String> {
    name.to_lowercase().split([' ', '-']).map(str::to_owned).collect()
}

/// Returns whether a word names a quantile: `p99.9`.
fn is_quantile(word: &str) -> bool {
    let percent: Option<f64> = word.strip_prefix('p').and_then(|percent| percent.parse().ok());
    percent.is_some_and(|percent| (0.0..100.0).contains(&percent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Returns the heads and keys of columns that views write as literals.
    fn literals(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                literals(&path, found);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let text = text.split("#[cfg(test)]").next().unwrap();
                for call in [" text(\"", " number(\"", " figure(\"", " prose(\"", ".key(\""] {
                    for after in text.split(call).skip(1) {
                        found.push(after.split('"').next().unwrap().to_owned());
                    }
                }
            }
        }
    }

    #[test]
    fn every_head_of_a_view_is_known() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut heads = Vec::new();
        literals(&crates.join("report/src/view"), &mut heads);
        literals(&crates.join("patterns/src"), &mut heads);
        assert!(heads.len() > 150, "{} heads", heads.len());
        heads.retain(|head| check(head).is_err());
        assert!(heads.is_empty(), "{heads:?}");
    }

    #[test]
    fn a_misspelt_column_is_refused_with_the_one_that_was_meant() {
        for typed in [
            "p50",
            "p99.9 us",
            "p50-us",
            "Lost",
            "of-rounds",
            "% above 10 us",
            "half_rtt p50",
            "Gb/s",
            "size B",
        ] {
            assert_eq!(check(typed), Ok(()), "{typed}");
        }
        assert!(check("foo").unwrap_err().starts_with("no table has 'foo': use all"));
        assert!(check("lsot").unwrap_err().contains("(did you mean 'lost'?)"));
        assert!(check("p5O").unwrap_err().contains("(did you mean 'p50'?)"));
    }
}
