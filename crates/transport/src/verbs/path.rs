//! Which path an end takes: what of it is known when its loops are compiled.

use super::endpoint::EndpointConfig;
use super::options::CallStyle;
use super::queues::Queues;
use super::service::Service;
use crate::Operation;

/// What a lean path does with its messages.
pub trait Lean: Send + 'static {
    /// Whether they are operations on the other end's memory; else it sends them.
    const REMOTE: bool;
}

/// A lean path of sends.
pub struct LeanSend;
/// A lean path of writes that are seen in memory, of reads, and of atomic additions.
pub struct LeanRemote;

impl Lean for LeanSend {
    const REMOTE: bool = false;
}

impl Lean for LeanRemote {
    const REMOTE: bool = true;
}

/// The operation of the lean path that an end may have: one queue pair with receives of its own,
/// RC, UC or UD, the classic calls, payloads that are read, no stamps by the device, no poll that
/// sleeps, and no writes that wait for slots of the other end.
pub(super) fn lean_operation(config: &EndpointConfig, queues: &Queues) -> Option<Operation> {
    let is_plain = queues.pairs.len() == 1
        && queues.shared.is_none()
        && queues.stamps.is_none()
        && matches!(config.service, Service::Rc | Service::Uc | Service::Ud)
        && !config.is_numbered
        && (config.posting, config.polling) == (CallStyle::Classic, CallStyle::Classic)
        && !config.sleeps_for_sends;
    let waits_for_slots = config.is_told || config.answers > 0;
    let fits = match config.operation {
        Operation::Send => !config.watches_memory && !config.send_only,
        Operation::Write => config.watches_memory && !config.send_only && !waits_for_slots,
        Operation::Read | Operation::FetchAdd => config.send_only,
        _ => false,
    };
    (is_plain && fits).then_some(config.operation)
}
