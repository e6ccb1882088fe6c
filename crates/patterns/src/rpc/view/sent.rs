//! What sections of `rpc` are made from: a run with what it sends, and each length of it.

use crate::prelude::*;
use crate::rpc::lengths::{Lengths, OfSize};
use crate::rpc::spec::{Slowdown, Spec};
use wiregauge_base::units::counted;
use wiregauge_figures::view::byte_rate::{self, ByteRateUnit};
use wiregauge_figures::view::compared::{Compared, Named, ends_of, told_apart};
use wiregauge_figures::view::model::Figure;
use wiregauge_figures::view::number::US;

/// A run with what it sends, and what the record says of its lengths.
pub(super) struct Sent<'a> {
    pub run: &'a Run,
    pub rpc: Spec,
    pub lengths: Lengths,
}

/// One length of it.
pub(super) struct Length<'a> {
    pub sent: &'a Sent<'a>,
    pub of: &'a OfSize,
}

impl OfRun for &Sent<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.run)
    }
}

impl OfRun for Length<'_> {
    fn run(&self) -> Option<&Run> {
        Some(self.sent.run)
    }
}

impl<'a> Sent<'a> {
    /// What a run of rpc says; `None`: it has failed.
    pub fn of(run: &'a Run) -> Option<Sent<'a>> {
        let lengths = serde_json::from_value(run.details.clone()?).ok()?;
        Some(Sent { run, rpc: run.case.spec("rpc")?, lengths })
    }

    /// All requests.
    pub fn summary(&self) -> Option<&Summary> {
        self.run.summary(self.lengths.metric)
    }

    /// The mean slowdown by the definition of the run; unloaded requests have none.
    pub fn slowdown(&self) -> Cell {
        let mut known = self.lengths.slowdowns.iter().filter(|_| !self.rpc.unloaded);
        match known.find(|one| one.by == self.rpc.slowdown) {
            Some(found) => Cell::figure(found.mean.value, found.mean.interval, 1.0),
            None => Cell::None,
        }
    }

    pub fn load(&self) -> Cell {
        match self.run.case.schedule.rate() {
            _ if self.rpc.unloaded => "unloaded".into(),
            Some(rate) => {
                let unit = byte_rate::or(ByteRateUnit::Gigabits);
                let offered = rate.0 * self.rpc.workload.mean() * unit.factor();
                format!("{offered:.3} {}", unit.name()).into()
            }
            None => counted(self.rpc.clients, "client").into(),
        }
    }

    pub fn lengths(&self) -> impl Iterator<Item = Length<'_>> {
        self.lengths.sizes.iter().map(|of| Length { sent: self, of })
    }
}

impl Length<'_> {
    /// What its times are held against; of unloaded requests nothing.
    pub fn base_ns(&self) -> Option<f64> {
        self.of.unloaded.by(self.sent.rpc.slowdown).filter(|_| !self.sent.rpc.unloaded)
    }

    pub fn unloaded(&self) -> Cell {
        let is_median = self.sent.rpc.slowdown == Slowdown::UnloadedP50;
        let interval = self.of.unloaded.p50_interval.filter(|_| is_median);
        self.base_ns().map_or(Cell::None, |ns| Cell::figure(ns, interval, US))
    }

    pub fn slowdown(&self, p: f64) -> Cell {
        let found =
            self.of.slowdown(self.sent.rpc.slowdown, p).filter(|_| self.base_ns().is_some());
        found.map_or(Cell::None, |(ratio, interval)| Cell::figure(ratio, interval, 1.0))
    }
}

/// Which of the runs of a load has the least mean slowdown; of one run, its slowdown.
pub(super) fn answer<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<String> {
    let loads = runs.filter_map(Sent::of).filter_map(|sent| {
        let Cell::Figure(mean) = sent.slowdown() else { return None };
        let Cell::Text(load) = sent.load() else { return None };
        Some((format!("{} at {load}", sent.rpc.workload.label()), sent.run, mean))
    });
    grouped(loads, |a, b| a.0 == b.0).into_iter().filter_map(|group| of_load(&group)).collect()
}

/// Says which of several runs of one load has the least mean slowdown.
fn of_load(group: &[(String, &Run, Figure)]) -> Option<String> {
    let load = &group.first()?.0;
    let runs: Vec<&Run> = group.iter().map(|(_, run, _)| *run).collect();
    let named = group.iter().zip(told_apart(&runs, ends_of)).map(|((.., mean), name)| Named {
        name,
        value: mean.value.0,
        interval: mean.interval,
    });
    let all: Vec<Named> = named.collect();
    if let [one] = all.as_slice() {
        return Some(format!("{load}: mean slowdown of {} {}.", one.name, one.text(1.0, "")));
    }
    let least = Compared {
        word: "best",
        what: "mean slowdown",
        scale: 1.0,
        unit: "",
        more_is_better: false,
    };
    least.best(&all).map(|said| format!("{load}: {said}"))
}

/// What the times of each length are held against.
pub(super) fn explained(by: Slowdown) -> &'static str {
    match by {
        Slowdown::UnloadedP50 => {
            "its time divided by the median of unloaded requests of its length"
        }
        Slowdown::UnloadedMin => {
            "its time divided by the minimum of unloaded requests of its length"
        }
        Slowdown::Cperf => {
            "its time divided by --baseline-rtt and the request's time on the link, as cperf.py \
             has it: echoes of long requests cannot come below 2"
        }
        Slowdown::Serialisation => {
            "its time divided by that of the shortest unloaded request and both messages on the \
             link"
        }
    }
}
