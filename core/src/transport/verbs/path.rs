//! Which path an end takes: what of it is known when its loops are compiled.

use super::endpoint::EndpointConfig;
use super::options::CallStyle;
use super::queues::Queues;
use super::service::Service;
use crate::transport::Operation;

/// What a lean path does with its messages.
pub trait Lean: Send + 'static {
    /// Whether it writes them into the other end's memory, where they are seen; else it sends them.
    const WRITES: bool;
}

/// A lean path of sends.
pub struct LeanSend;
/// A lean path of writes.
pub struct LeanWrite;

impl Lean for LeanSend {
    const WRITES: bool = false;
}

impl Lean for LeanWrite {
    const WRITES: bool = true;
}

/// The operation of the lean path that an end may have: one queue pair with receives of its own, RC
/// or UC, the classic calls, payloads that are read, no stamps by the device, and no poll that
/// sleeps.
pub(super) fn lean_operation(config: &EndpointConfig, queues: &Queues) -> Option<Operation> {
    let is_plain = queues.pairs.len() == 1
        && queues.shared.is_none()
        && queues.stamps.is_none()
        && matches!(config.service, Service::Rc | Service::Uc)
        && !config.is_numbered
        && (config.posting, config.polling) == (CallStyle::Classic, CallStyle::Classic)
        && !config.send_only
        && !config.sleeps_for_sends;
    match config.operation {
        Operation::Send if is_plain && !config.watches_memory => Some(Operation::Send),
        Operation::Write if is_plain && config.watches_memory => Some(Operation::Write),
        _ => None,
    }
}
