//! The probe of `load`: a flow of few and small requests beside the load, on a connection of its
//! own, that shows what a small message suffers from it. Pure.

use super::{OBJECT_SIZE, Spec};
use crate::prelude::*;
use wiregauge_plan::request::{WARMUP, WARMUP_SHARE};

/// The probe beside a point: small requests at this rate, as long as the point lasts.
pub(super) fn probe(point: &Case, rate: MessageRate) -> Case {
    // As long as was asked for, or as its trace.
    let last = point.trace.as_ref().and_then(|trace| trace.times_ns.last().copied());
    let time = point.bound.time.unwrap_or(Span(last.unwrap_or(0).max(1)));
    let messages = (rate.0 * time.0 as f64 / 1e9) as u64;
    let of = point.spec::<Spec>();
    let spec = Spec {
        clients: 0,
        object_size: of.object_size.min(OBJECT_SIZE),
        buffers: None,
        probe: true,
        search: None,
        ..*of
    };
    Case {
        size: spec.message(),
        bound: Bound { count: None, time: Some(time) },
        warmup: point.warmup.min(messages / WARMUP_SHARE).min(WARMUP),
        schedule: Schedule::Poisson { rate },
        trace: None,
        ..point.with_spec(spec)
    }
}

/// The point beside which a probe runs; `None` where it runs alone.
pub fn probed(plan: &Plan, probe: usize) -> Option<usize> {
    let group = plan.concurrent.iter().find(|group| group.contains(&(probe as u32)))?;
    let mut points = group.iter().map(|number| *number as usize);
    points.find(|number| plan.cases.get(*number).is_some_and(|case| !case.spec::<Spec>().probe))
}
