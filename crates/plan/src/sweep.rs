//! Sweeps of sizes as a person writes them: `64`, `8,64,1KiB`, `8..64KiB*2`, `8..64+8`,
//! `1kB..100kB/8`.

use std::collections::BTreeSet;
use std::iter::successors;
use wiregauge_base::units::{Bytes, MessageRate};

/// Most sizes of one sweep: more would take a day and are a slip.
pub const MOST_POINTS: usize = 1000;
/// Most characters of a sweep: longer is not a person's.
const LONGEST_TEXT: usize = 10_000;
/// By how much `--perturb` moves a size: NetPIPE's distance, enough to leave alignment and a power
/// of two behind.
const PERTURBATION: u64 = 3;

/// The sizes of a sweep, rising, each once.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn parse(text: &str) -> Result<Vec<Bytes>, String> {
    if text.len() > LONGEST_TEXT {
        return Err(too_many(&(text.chars().take(40).collect::<String>() + " ...")));
    }
    let mut sizes = Vec::new();
    for part in text.split(',') {
        match part.split_once("..") {
            None => sizes.push(part.trim().parse()?),
            Some((first, rest)) => {
                sizes.extend(range(part, first, rest)?.take(MOST_POINTS + 1).map(Bytes));
            }
        }
        ensure!(sizes.len() <= MOST_POINTS, too_many(text));
    }
    sizes.sort_unstable();
    sizes.dedup();
    Ok(sizes)
}

fn too_many(text: &str) -> String {
    format!("sweep '{text}' has too many sizes: use at most {MOST_POINTS}")
}

/// The sizes of `A..B*FACTOR`, `A..B+STEP` or `A..B/STEPS`, without an end where that is wished.
fn range(part: &str, first: &str, rest: &str) -> Result<Box<dyn Iterator<Item = u64>>, String> {
    let form = || {
        format!(
            "invalid sweep '{part}': use A..B*FACTOR (factor above 1), A..B+STEP (step above 0) \
             or A..B/STEPS (2 to {MOST_POINTS}), with A not above B and A above 0, or a list of \
             sizes"
        )
    };
    let at = rest.find(['*', '+', '/']).ok_or_else(form)?;
    let (last, by) = rest.split_at(at);
    let size = |text: &str| text.trim().parse::<Bytes>();
    let (Bytes(first), Bytes(last)) = (size(first)?, size(last)?);
    let (kind, by) = by.split_at(1);
    let (least, most) = (first as f64, last as f64);
    match kind {
        _ if first > last || first == 0 => Err(form()),
        "*" => {
            let factor: f64 = by.trim().parse().map_err(|_| form())?;
            ensure!(factor > 1.0 && factor.is_finite(), form());
            // A factor close to 1 still moves on.
            let next = move |at: &f64| Some((at * factor).max(at.round() + 1.0));
            let all = successors(Some(least), next).map(f64::round);
            Ok(Box::new(all.take_while(move |at| *at <= most).map(|at| at as u64)))
        }
        "+" => {
            let Bytes(step) = size(by)?;
            ensure!(step > 0, form());
            let all = successors(Some(first), move |at| at.checked_add(step));
            Ok(Box::new(all.take_while(move |at| *at <= last)))
        }
        _ => {
            let steps: usize = by.trim().parse().map_err(|_| form())?;
            ensure!((2..=MOST_POINTS).contains(&steps), form());
            Ok(Box::new(logarithmic(least, most, steps).map(|at| at.round() as u64)))
        }
    }
}

/// The values of a logarithmic sweep, both ends included; `steps` is at least 2.
fn logarithmic(first: f64, last: f64, steps: usize) -> impl Iterator<Item = f64> {
    let share = move |step: usize| step as f64 / (steps - 1) as f64;
    (0..steps).map(move |step| first * (last / first).powf(share(step)))
}

/// Each size with its neighbours 3 bytes below and above, where those are above 0.
pub fn perturbed(sizes: &[Bytes]) -> Vec<Bytes> {
    let near = |Bytes(size): &Bytes| {
        [size.saturating_sub(PERTURBATION), *size, size.saturating_add(PERTURBATION)]
    };
    let all: BTreeSet<u64> = sizes.iter().flat_map(near).filter(|size| *size > 0).collect();
    all.into_iter().map(Bytes).collect()
}

/// Returns the whole numbers of a list or sweep, rising, each once: `1..16384*2`.
///
/// # Errors
/// A sentence that says what is allowed.
pub fn counts(text: &str) -> Result<Vec<u32>, String> {
    read_counts(text)
        .ok_or_else(|| format!("invalid numbers '{text}': use 8, 1,8,64 or 1..16384*2"))
}

fn read_counts(text: &str) -> Option<Vec<u32>> {
    // Thousands are kB of a size; no unit of memory is a number.
    let is_number = text.chars().all(|c| c.is_ascii_digit() || ".,*+/ k".contains(c));
    let sizes = parse(&text.replace('k', "kB")).ok().filter(|_| is_number)?;
    sizes.into_iter().map(|Bytes(count)| u32::try_from(count).ok()).collect()
}

/// Most rates of a list or sweep.
const MOST_RATES: usize = 100;

/// Rates of load, rising, each once.
pub fn rates(text: &str) -> Result<Vec<MessageRate>, String> {
    let form = || format!("invalid rates '{text}': use 50k, 10k,20k or 1k..100k/8 (8 steps)");
    let mut rates: Vec<f64> = Vec::new();
    for part in text.split(',') {
        let one = |text: &str| text.trim().parse::<MessageRate>().map(|rate| rate.0);
        let Some((first, rest)) = part.split_once("..") else {
            rates.push(one(part)?);
            continue;
        };
        let (last, steps) = rest.split_once('/').ok_or_else(form)?;
        let (first, last) = (one(first).map_err(|_| form())?, one(last).map_err(|_| form())?);
        let steps: usize = steps.trim().parse().map_err(|_| form())?;
        ensure!((2..=MOST_RATES).contains(&steps) && last > first, form());
        rates.extend(logarithmic(first, last, steps));
    }
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    match rates.len() {
        1..=MOST_RATES => Ok(rates.into_iter().map(MessageRate).collect()),
        many => Err(format!("'{text}' has {many} rates: use at most {MOST_RATES}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sizes(text: &str) -> Vec<u64> {
        parse(text).unwrap().into_iter().map(|size| size.0).collect()
    }

    #[test]
    fn numbers_are_swept_as_sizes_are_and_have_no_unit_of_memory() {
        assert_eq!(counts("1..16384*4").unwrap(), [1, 4, 16, 64, 256, 1024, 4096, 16_384]);
        assert_eq!(counts("8,1,8,16k").unwrap(), [1, 8, 16_000]);
        for wrong in ["1KiB", "8B", "", "5000000000", "-1", "0..4*2"] {
            assert!(counts(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_form_gives_its_sizes() {
        assert_eq!(sizes("64"), [64]);
        assert_eq!(sizes("64,8,64,1KiB"), [8, 64, 1024]);
        assert_eq!(sizes("8..64*2"), [8, 16, 32, 64]);
        assert_eq!(sizes("8..70*2,1"), [1, 8, 16, 32, 64]);
        assert_eq!(sizes("8..32+8"), [8, 16, 24, 32]);
        assert_eq!(sizes("1..100/3"), [1, 10, 100]);
        assert_eq!(sizes("8..64KiB*2").len(), 14);
        assert_eq!(perturbed(&[Bytes(2), Bytes(8)]), [2, 5, 8, 11].map(Bytes));
    }

    #[test]
    fn a_wrong_sweep_is_refused() {
        for bad in ["8..64", "64..8*2", "8..64*1", "8..64*", "8..64+0", "0..8*2", "8..64/1", "8.."]
        {
            assert!(parse(bad).unwrap_err().contains("invalid sweep"), "{bad}: {:?}", parse(bad));
        }
        assert!(parse("1..1MiB+1").unwrap_err().contains("too many sizes"));
        assert!(parse("8,x").unwrap_err().contains("invalid size"));
    }

    proptest! {
        #[test]
        fn nothing_that_is_typed_panics_or_grows(text in "[0-9.,*+/KMiB]{0,40}") {
            if let Ok(sizes) = parse(&text) {
                prop_assert!(sizes.len() <= MOST_POINTS && sizes.is_sorted());
            }
        }

        #[test]
        fn a_multiplied_sweep_rises_within_its_ends(
            first in 1u64..1000, more in 0u64..100_000, factor in 1.1f64..4.0
        ) {
            let last = first + more;
            let sizes = sizes(&format!("{first}..{last}*{factor}"));
            prop_assert_eq!(sizes[0], first);
            prop_assert!(sizes.windows(2).all(|w| w[0] < w[1]) && *sizes.last().unwrap() <= last);
        }
    }
}
