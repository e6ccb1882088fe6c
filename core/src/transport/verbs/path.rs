//! What of an endpoint is known when its loops are compiled.
//!
//! The code is the same for all. Where a path fixes what others read from the configuration, the
//! compiler leaves out what cannot happen: an option costs nothing where it is not used.

use crate::transport::Operation;

/// What is fixed of an endpoint.
pub trait Path: Send + 'static {
    /// The operation of a lean path: one queue pair with receives of its own, RC or UC, the classic
    /// calls, no stamps by the device. A lean write is seen in memory.
    const LEAN: Option<Operation>;
    /// Whether there is one.
    const IS_LEAN: bool = Self::LEAN.is_some();
}

/// Nothing: the configuration says everything.
pub struct AnyPath;
/// A lean path of sends.
pub struct LeanSend;
/// A lean path of writes.
pub struct LeanWrite;

impl Path for AnyPath {
    const LEAN: Option<Operation> = None;
}

impl Path for LeanSend {
    const LEAN: Option<Operation> = Some(Operation::Send);
}

impl Path for LeanWrite {
    const LEAN: Option<Operation> = Some(Operation::Write);
}
