//! The stages of messages, by the steps of their way that are stamped.

use super::apart::Kernels;
use super::path::{Half, Step, Way};
use wiregauge_host::trace::Kind;

/// A stage of all messages of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct StageDef {
    /// 0: from the client to the server, 1: back.
    pub leg: usize,
    /// In words; those of merged stages joined.
    pub name: String,
    /// Who works.
    pub half: Half,
    /// The trace point at which it ends; `None`: the program's own stamp.
    pub kind: Option<Kind>,
    /// Whether another message passes that trace point, for which this one waits.
    pub of_others: bool,
    /// Whether it begins at one host and ends at another.
    pub is_wire: bool,
}

impl StageDef {
    fn of_program(leg: usize, name: String, half: Half) -> StageDef {
        StageDef { leg, name, half, kind: None, of_others: false, is_wire: false }
    }
}

/// The stages: one for each step that is passed. A step that is not lends its name to the next.
pub(super) fn definitions(present: &[Vec<bool>], way: &Way) -> Vec<StageDef> {
    let steps = way.steps;
    let wire = Wire::of(way);
    let mut all = Vec::new();
    if way.is_scheduled {
        all.push(StageDef::of_program(0, GENERATOR.to_owned(), Half::Send));
    }
    let last = present.len().saturating_sub(1);
    for (leg, present) in present.iter().enumerate() {
        let mut waiting: Vec<&str> = Vec::new();
        let returns = steps.iter().any(|step| step.kind == Kind::SysExit);
        if leg == 1 && returns && !passes(steps, present, Kind::SysExit) {
            waiting.push("return");
        }
        for (number, (step, is_present)) in steps.iter().zip(present).enumerate() {
            if let Some(name) = wire.begins(number) {
                waiting.retain(|_| !wire.is_all_else);
                waiting.push(name);
            }
            let lends = !step.optional
                && !is_alternative(step, steps, present)
                && !wire.hides(leg, number, step);
            if *is_present {
                let own = Some(own_name(step, steps, present));
                let own = own.filter(|_| !wire.has(step));
                let of_others = step.by.is_of_others();
                // Most messages do not wait, and have what is lent in the stage after.
                let lent = if of_others { Vec::new() } else { std::mem::take(&mut waiting) };
                let is_wire = lent.iter().any(|name| is_wire(name));
                let half = if is_wire { Half::Receive } else { step.half };
                let name = lent.into_iter().chain(own).collect::<Vec<_>>().join(", ");
                all.push(StageDef { leg, name, half, kind: Some(step.kind), of_others, is_wire });
            } else if lends {
                waiting.push(step.name);
            }
        }
        if leg == last {
            let is_wire = waiting.iter().any(|name| is_wire(name));
            let own = (!is_wire).then_some(TO_APPLICATION);
            let name = waiting.into_iter().chain(own).collect::<Vec<_>>().join(", ");
            all.push(StageDef { is_wire, ..StageDef::of_program(leg, name, Half::Receive) });
        }
    }
    all
}

/// From the last stamp of one host to the first of the other, by the clock model between them.
const WIRE: &str = "wire";
/// The same where the other host stamps nothing.
const WIRE_AND_OTHER: &str = "wire and other end";

/// Whether a name of a stage, or one of those that were merged, is that of what lies between the
/// hosts.
pub fn is_wire(name: &str) -> bool {
    name.split(", ").any(|part| part == WIRE || part == WIRE_AND_OTHER)
}

/// Where the way leaves one host for another.
struct Wire {
    /// The first step at the other host; `None`: both ends have one kernel.
    at: Option<usize>,
    /// Whether the other end's steps are in it.
    is_all_else: bool,
}

impl Wire {
    fn of(way: &Way) -> Wire {
        let first = way.steps.iter().position(Wire::is_device);
        Wire {
            at: first.filter(|_| way.kernels != Kernels::One),
            is_all_else: way.kernels == Kernels::Ours,
        }
    }

    fn is_device(step: &Step) -> bool {
        matches!(step.kind, Kind::NetifRx | Kind::Gro)
    }

    fn begins(&self, number: usize) -> Option<&'static str> {
        let name = if self.is_all_else { WIRE_AND_OTHER } else { WIRE };
        (self.at == Some(number)).then_some(name)
    }

    /// Whether a step has the wire's name.
    fn has(&self, step: &Step) -> bool {
        self.at.is_some() && Wire::is_device(step)
    }

    /// Whether a step that has no stamp is in the wire's.
    fn hides(&self, leg: usize, number: usize, step: &Step) -> bool {
        let is_there = self.at.is_some_and(|at| (leg == 0) == (number >= at));
        self.has(step) || self.is_all_else && is_there
    }
}

/// From the time at which a schedule wanted a message sent to its submit stamp.
pub const GENERATOR: &str = "generator lateness";
const TO_APPLICATION: &str = "to the application";

fn passes(steps: &[Step], present: &[bool], kind: Kind) -> bool {
    steps.iter().zip(present).any(|(step, is_present)| step.kind == kind && *is_present)
}

/// A packet arrives by GRO or by `netif_rx`: what is not passed is no part of the way.
fn is_alternative(step: &Step, steps: &[Step], present: &[bool]) -> bool {
    match step.kind {
        Kind::NetifRx => passes(steps, present, Kind::Gro),
        Kind::Gro => passes(steps, present, Kind::NetifRx),
        _ => false,
    }
}

/// A thread that was woken does not poll.
fn own_name(step: &Step, steps: &[Step], present: &[bool]) -> &'static str {
    match step.kind {
        Kind::Copied if !step.by.is_of_others() && passes(steps, present, Kind::Switch) => {
            "running and copy"
        }
        Kind::Arrived if passes(steps, present, Kind::Switch) => "running and poll",
        _ => step.name,
    }
}
