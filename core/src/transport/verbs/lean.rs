//! Which path an end takes, and the configuration as its path has it.

use super::endpoint::{EndpointConfig, VerbsEndpoint};
use super::options::{CallStyle, Service};
use super::path::Path;
use super::queues::Queues;
use crate::transport::Operation;

/// The operation of the lean path that an end may have.
pub(super) fn operation_of(config: &EndpointConfig, queues: &Queues) -> Option<Operation> {
    let is_plain = queues.pairs.len() == 1
        && queues.shared.is_none()
        && queues.stamps.is_none()
        && config.service != Service::Ud
        && (config.posting, config.polling) == (CallStyle::Classic, CallStyle::Classic)
        && !config.send_only;
    match config.operation {
        Operation::Send if is_plain && !config.watches_memory => Some(Operation::Send),
        Operation::Write if is_plain && config.watches_memory => Some(Operation::Write),
        _ => None,
    }
}

/// The configuration as the data path asks for it.
impl<P: Path> VerbsEndpoint<P> {
    #[inline(always)]
    pub(super) fn operation(&self) -> Operation {
        P::LEAN.unwrap_or(self.config.operation)
    }

    #[inline(always)]
    pub(super) fn pair_count(&self) -> usize {
        if P::IS_LEAN { 1 } else { self.queues.pairs.len() }
    }

    #[inline(always)]
    pub(super) fn is_datagram(&self) -> bool {
        !P::IS_LEAN && self.config.service == Service::Ud
    }

    #[inline(always)]
    pub(super) fn posting(&self) -> CallStyle {
        if P::IS_LEAN { CallStyle::Classic } else { self.config.posting }
    }

    #[inline(always)]
    pub(super) fn polling(&self) -> CallStyle {
        if P::IS_LEAN { CallStyle::Classic } else { self.config.polling }
    }

    #[inline(always)]
    pub(super) fn watches_memory(&self) -> bool {
        P::LEAN.map_or(self.config.watches_memory, |lean| lean == Operation::Write)
    }

    #[inline(always)]
    pub(super) fn send_only(&self) -> bool {
        !P::IS_LEAN && self.config.send_only
    }
}
