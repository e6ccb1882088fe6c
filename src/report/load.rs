//! The curves of `load`: the points of a server, its knee, and the highest rate within a bound.
//!
//! Takes a record; gives curves. Both the terminal's sentences and the page's plots are made of
//! them.

use crate::plan::{Case, Pattern};
use crate::record::schema::{Record, Run};
use crate::run::search::{self, Point};
use crate::units::Bytes;

/// The runs of one server, from idle to saturation.
#[derive(Clone, Debug)]
pub struct Curve<'a> {
    /// What tells it from the others: of a study the series, else transport and way to wait, and
    /// what else differs.
    pub name: String,
    /// Closed loops by their clients.
    pub closed: Vec<&'a Run>,
    /// Open loops by what they offered.
    pub open: Vec<(&'a Run, Point)>,
}

impl Curve<'_> {
    /// Where it bends, a position in `open`; `None`: fewer than three points tell nothing.
    pub fn knee(&self) -> Option<usize> {
        search::knee(&self.points()).filter(|_| self.open.len() > 2)
    }

    /// The highest rate that keeps the record's bound, a position in `open`.
    pub fn highest(&self, record: &Record) -> Option<usize> {
        search::highest(&self.points(), record.plan.search.slo?)
    }

    /// What is known of each open loop.
    pub fn points(&self) -> Vec<Point> {
        self.open.iter().map(|(_, point)| *point).collect()
    }
}

/// What the points of one curve share.
fn place(case: &Case) -> (&'static str, &'static str, Bytes, u32, u32) {
    let buffers = case.load.buffers.map_or((0, 0), |buffers| (buffers.transmit, buffers.receive));
    (case.transport.name(), case.wait.name(), case.size, buffers.0, buffers.1)
}

/// The runs of `load`, curve by curve, each by its load whenever a point was added.
pub fn runs(record: &Record) -> Vec<&Run> {
    let mut runs: Vec<&Run> =
        record.runs.iter().filter(|run| run.case.command() == Pattern::Load.name()).collect();
    let offered = |run: &Run| run.case.schedule.rate().map_or(0.0, |rate| rate.0);
    runs.sort_by(|a, b| {
        place(&a.case)
            .cmp(&place(&b.case))
            .then(a.case.load.clients.cmp(&b.case.load.clients))
            .then(offered(a).total_cmp(&offered(b)))
    });
    runs
}

/// The curves of a record.
pub fn curves(record: &Record) -> Vec<Curve<'_>> {
    let quantile = record.plan.search.slo.map_or(0.99, |slo| slo.quantile);
    let series = |run: &Run| record.plan.study.as_ref()?.series_of(run.index);
    let mut curves: Vec<(_, Curve<'_>)> = Vec::new();
    for run in runs(record) {
        let key = (series(run).map(|series| series.name.as_str()), place(&run.case));
        let at = match curves.iter().position(|(known, _)| *known == key) {
            Some(at) => at,
            None => {
                let name = key.0.map_or_else(|| name(&run.case), String::from);
                curves.push((key, Curve { name, closed: Vec::new(), open: Vec::new() }));
                curves.len() - 1
            }
        };
        let curve = &mut curves[at].1;
        match Point::of(run, quantile) {
            Some(point) => curve.open.push((run, point)),
            None => curve.closed.push(run),
        }
    }
    let curves = curves.into_iter().map(|(_, curve)| curve);
    curves.filter(|curve| curve.open.len() + curve.closed.len() > 0).collect()
}

/// The name of a curve outside a study.
fn name(case: &Case) -> String {
    let buffers = case.load.buffers.map_or_else(String::new, |buffers| {
        format!(" TX {} RX {}", buffers.transmit, buffers.receive)
    });
    format!("{} {}{buffers}", case.transport, case.wait.name())
}

/// Whether there is a bound that some curve keeps at no rate.
pub fn breaks_bound(record: &Record) -> bool {
    if record.plan.search.slo.is_none() {
        return false;
    }
    let curves = curves(record);
    let open = |curve: &&Curve<'_>| !curve.open.is_empty();
    let mut open = curves.iter().filter(open).peekable();
    open.peek().is_none() || open.any(|curve| curve.highest(record).is_none())
}
