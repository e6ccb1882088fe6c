//! A case as a control message carries it. The specification travels as text: only its pattern
//! knows what it holds.

use crate::plan::{Bound, Case, FindPattern, Schedule, Settings, TimerKind, Topology, Trace, Wait};
use crate::transport::TransportKind;
use crate::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// A [`Case`] on its way to an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseFrame {
    pattern: String,
    /// JSON.
    spec: String,
    transport: TransportKind,
    wait: Wait,
    topology: Topology,
    size: Bytes,
    bound: Bound,
    warmup: u64,
    schedule: Schedule,
    trace: Option<Trace>,
    timer: TimerKind,
    check: bool,
    loss_after: Span,
    timeout: Span,
    settings: Settings,
    seed: u64,
}

impl CaseFrame {
    /// Of a case.
    pub fn new(case: &Case) -> CaseFrame {
        let case = case.clone();
        CaseFrame {
            pattern: case.pattern.name().into(),
            spec: case.spec.to_json().to_string(),
            transport: case.transport,
            wait: case.wait,
            topology: case.topology,
            size: case.size,
            bound: case.bound,
            warmup: case.warmup,
            schedule: case.schedule,
            trace: case.trace,
            timer: case.timer,
            check: case.check,
            loss_after: case.loss_after,
            timeout: case.timeout,
            settings: case.settings,
            seed: case.seed,
        }
    }

    /// The case, as far as its pattern could run it.
    ///
    /// # Errors
    /// A sentence: an unknown pattern, or a specification that it refuses.
    pub fn read(self, find: FindPattern) -> Result<Case, String> {
        let name = &self.pattern;
        let pattern = find(name).ok_or_else(|| format!("unknown pattern '{name}'"))?;
        let json = serde_json::from_str(&self.spec);
        let json = json.map_err(|error| format!("the specification of {name}: {error}"))?;
        let spec = pattern.read_spec(json)?;
        self.topology.check()?;
        let case = Case {
            pattern,
            spec,
            transport: self.transport,
            wait: self.wait,
            topology: self.topology,
            size: self.size,
            bound: self.bound,
            warmup: self.warmup,
            schedule: self.schedule,
            trace: self.trace,
            timer: self.timer,
            check: self.check,
            loss_after: self.loss_after,
            timeout: self.timeout,
            settings: self.settings,
            seed: self.seed,
        };
        pattern.check_foreign(&case)?;
        Ok(case)
    }
}
