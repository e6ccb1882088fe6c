//! What a transport says of itself before anything runs.

use super::traffic::Traffic;
use crate::options::OptionTable;

/// What can be asked of a transport, known before anything runs.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// One line for `wiregauge list`.
    pub about: &'static str,
    /// Largest message in bytes.
    pub largest: u64,
    /// What traffic it carries.
    pub traffic: &'static [Traffic],
    /// Whether a message may be lost without an error.
    pub loses: bool,
    /// Whether messages keep their order.
    pub ordered: bool,
    /// Whether it simulates the other end, so that one process plays both roles one after the
    /// other.
    pub one_process: bool,
    /// Whether its ends may be on two hosts.
    pub between_hosts: bool,
    /// Whether a message must be a stream's sample, which it carries in a form of its own.
    pub samples_only: bool,
    /// Whether the kernel can watch many of its ends at once, and lets two threads share one.
    pub watchable: bool,
    /// Whether `wiregauge` without a command measures it.
    pub in_survey: bool,
    /// Whether it carries nothing: what is measured over it is the instrument itself.
    pub is_instrument: bool,
    /// Fewest receive buffers of a queue.
    pub least_receives: u32,
    /// The options that it has.
    pub settings: OptionTable,
    /// What lies between submit and receive, for the record.
    pub path: &'static str,
}

impl Descriptor {
    /// Whether it carries traffic of a kind for messages of any content.
    pub fn carries(&self, traffic: Traffic) -> bool {
        !self.samples_only && self.traffic.iter().any(|known| known.same_kind(traffic))
    }

    /// What most transports have in common: `Descriptor { about, ..Descriptor::BASE }`.
    pub const BASE: Descriptor = Descriptor {
        about: "",
        largest: 0,
        traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward, Traffic::Both],
        loses: false,
        ordered: true,
        one_process: false,
        between_hosts: false,
        samples_only: false,
        watchable: false,
        in_survey: false,
        is_instrument: false,
        least_receives: 1,
        settings: &[],
        path: "",
    };
}
