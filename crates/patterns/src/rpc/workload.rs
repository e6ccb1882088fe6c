//! How long messages are: one length, a distribution of a file, or one of the shipped workloads.
//! Pure.
//!
//! A distribution is a step function, as its originals draw from it: a draw `u` of \[0, 1) gives
//! the first length whose cumulative fraction is at least `u`, and nothing between two lengths.

use serde::{Deserialize, Serialize};
use wiregauge_base::units::Bytes;
use wiregauge_plan::Trace;
use wiregauge_plan::shipped::{REFERENCES, text};
use wiregauge_plan::written::{Field, Fields, Misplaced, Place, Read, Written};

/// Most lengths of a distribution: the full tables of the originals have at most 842.
const MOST: usize = 100_000;
/// How far the last cumulative fraction of a file may be from 1: tables are printed rounded.
const ROUNDED: f64 = 1e-3;

const SHIPPED_FILE: &str = "references/workloads.toml";

/// A distribution of lengths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Workload {
    /// As it was asked for: `w3`, `100`, or the file's path.
    pub name: String,
    /// What it is, and how close.
    pub what: String,
    /// Lengths with the fraction of messages that are no longer, both rising; the last is 1.
    pub steps: Vec<(Bytes, f64)>,
    /// The largest length that the original has; those of a compact form stop below.
    pub largest: Bytes,
}

impl Workload {
    /// The lengths of a trace, each as frequent as there; `None`: it has none.
    pub fn of_trace(trace: &Trace) -> Option<Workload> {
        let mut sizes = trace.sizes.clone();
        sizes.sort_unstable();
        let largest = *sizes.last()?;
        let share = |before: usize| (before + 1) as f64 / sizes.len() as f64;
        let steps = merged(sizes.iter().enumerate().map(|(at, size)| (*size, share(at))));
        let what = format!("the lengths of {} messages of a trace", sizes.len());
        Some(Workload { name: trace.file.clone(), what, steps, largest })
    }

    /// Messages of one length.
    pub fn fixed(size: Bytes) -> Workload {
        let what = "one length".to_string();
        Workload { name: size.0.to_string(), what, steps: vec![(size, 1.0)], largest: size }
    }

    /// The names of those that are shipped.
    pub fn names() -> Vec<String> {
        shipped().unwrap_or_default().into_iter().map(|workload| workload.name).collect()
    }

    /// A shipped one.
    pub fn shipped(name: &str) -> Option<Workload> {
        shipped().ok()?.into_iter().find(|workload| workload.name == name)
    }

    /// One of a file: a `size cumulative` a line, sizes in bytes that do not fall, cumulative
    /// fractions rising to 1; lines of one size are one. A line of one number (the mean, as the
    /// originals' files begin) and what follows a `#` is passed over.
    pub fn of_file(file: &str, text: &str) -> Result<Workload, Misplaced> {
        let written = Written { file: file.into(), text: text.into() };
        let mut steps: Vec<(Bytes, f64)> = Vec::new();
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            let begin = end;
            end += line.len();
            if let Some(step) = step(&written, begin, line, steps.last())? {
                let shared = steps.last().map_or(0.0, |last| last.1);
                match steps.last_mut() {
                    Some(last) if last.0 == step.0 => last.1 = step.1,
                    // Otherwise a length that no message has.
                    _ if step.1 > shared => steps.push(step),
                    _ => {}
                }
            }
            let sentence = || format!("at most {MOST} lengths are allowed");
            ensure!(steps.len() <= MOST, written.wrong(&(begin..end), sentence()));
        }
        let Some(last) = steps.last_mut() else {
            let sentence = "the file has no lengths: use lines such as '100 0.5', a size and the \
                            fraction of messages that are no longer";
            return Err(written.wrong(&(0..0), sentence));
        };
        let (end, fraction) = (text.trim_end().len()..text.len(), last.1);
        let sentence = format!("the last fraction is {fraction}; it must be 1");
        ensure!(fraction >= 1.0 - ROUNDED, written.wrong(&end, sentence));
        last.1 = 1.0;
        let largest = last.0;
        let what = format!("{} lengths of a file", steps.len());
        Ok(Workload { name: file.into(), what, steps, largest })
    }

    /// Its name with a unit where it is a length.
    pub fn label(&self) -> String {
        match self.steps.as_slice() {
            [(size, _)] => size.to_string(),
            _ => self.name.clone(),
        }
    }

    /// The longest length.
    pub fn longest(&self) -> Bytes {
        self.steps.last().map_or(Bytes(0), |step| step.0)
    }

    /// The mean length in bytes.
    pub fn mean(&self) -> f64 {
        let mut before = 0.0;
        let mut mean = 0.0;
        for (size, cumulative) in &self.steps {
            mean += (cumulative - before) * size.0 as f64;
            before = *cumulative;
        }
        mean
    }

    /// The same with no message longer than `most`, and none shorter than `least`: what a
    /// transport can carry. Longer ones are cut, as the originals do.
    pub fn within(&self, least: Bytes, most: Bytes) -> Workload {
        let cut = |size: Bytes| Bytes(size.0.clamp(least.0, most.0.max(least.0)));
        let steps = merged(self.steps.iter().map(|(size, cumulative)| (cut(*size), *cumulative)));
        Workload { steps, ..self.clone() }
    }
}

/// One line of a file that begins at a byte of it.
fn step(
    written: &Written,
    begin: usize,
    line: &str,
    last: Option<&(Bytes, f64)>,
) -> Result<Option<(Bytes, f64)>, Misplaced> {
    let line = line.split('#').next().unwrap_or_default();
    let wrong = |word: &str, sentence: String| {
        // A word is a slice of its line.
        let at = begin + (word.as_ptr() as usize - line.as_ptr() as usize);
        Err(written.wrong(&(at..at + word.len()), sentence))
    };
    let words: Vec<&str> = line.split_whitespace().collect();
    let (size, fraction) = match words[..] {
        [] => return Ok(None),
        [mean] if last.is_none() && mean.parse::<f64>().is_ok() => return Ok(None),
        [alone] => return wrong(alone, "expected a size and a fraction, such as '100 0.5'".into()),
        [size, fraction] => (size, fraction),
        [_, _, more, ..] => return wrong(more, "a line has only a size and a fraction".into()),
    };
    let is_size = |bytes: &f64| (0.0..1e15).contains(bytes) && bytes.fract() == 0.0;
    let Some(bytes) = size.parse().ok().filter(is_size) else {
        return wrong(size, format!("invalid size '{size}': use whole bytes such as 100"));
    };
    let is_fraction = |fraction: &f64| (0.0..=1.0 + ROUNDED).contains(fraction);
    let Some(cumulative) = fraction.parse().ok().filter(is_fraction) else {
        return wrong(fraction, format!("invalid fraction '{fraction}': use 0 to 1, such as 0.5"));
    };
    if last.is_some_and(|last| bytes < last.0.0 as f64) {
        return wrong(size, format!("{size} B is less than the line before; sizes must not fall"));
    }
    if last.is_some_and(|last| cumulative < last.1) {
        let sentence = format!("{fraction} is less than the line before; fractions must rise");
        return wrong(fraction, sentence);
    }
    Ok(Some((Bytes(bytes as u64), cumulative.min(1.0))))
}

/// All that are shipped.
fn shipped() -> Result<Vec<Workload>, Misplaced> {
    let written =
        Written { file: SHIPPED_FILE.into(), text: text(&REFERENCES, "workloads").into() };
    let mut fields = written.fields("the file of workloads")?;
    let source: String = fields.get("source")?;
    let read = |mut fields: Fields<'_>| {
        let (name, of): (String, String) = (fields.get("name")?, fields.get("what")?);
        let (mut steps, mut largest) = (Vec::new(), Bytes(0));
        for share in fields.get::<Vec<Field<'_>>>("shares")? {
            let place = share.span();
            let parts: Vec<(f64, Place)> = Vec::read(&written, "shares", share)?;
            let [(cumulative, _), (mean, _), (most, _)] = parts.as_slice() else {
                return Err(written.wrong(&place, "a share has three numbers"));
            };
            steps.push((Bytes(*mean as u64), *cumulative));
            largest = Bytes(*most as u64);
        }
        let what = format!("{of}; compact: the mean is exact, the shape coarse ({source})");
        Ok(Workload { name, what, steps: merged(steps), largest })
    };
    fields.get::<Vec<Fields<'_>>>("workload")?.into_iter().map(read).collect()
}

/// Steps of one length become one.
fn merged(steps: impl IntoIterator<Item = (Bytes, f64)>) -> Vec<(Bytes, f64)> {
    let mut merged: Vec<(Bytes, f64)> = Vec::new();
    for (size, cumulative) in steps {
        match merged.last_mut() {
            Some(last) if last.0 == size => last.1 = cumulative,
            _ => merged.push((size, cumulative)),
        }
    }
    merged
}

#[cfg(test)]
mod tests;
