//! Many nodes that send to each other: by slots of common time (scheduled), or as fast as their
//! queues take it (chaotic).
//!
//! Every node is one process that runs the same loop over its connections to others. The controller
//! takes all of them through the same steps: open, connect, wait for the agreed instant, exchange,
//! collect.

mod execution;
mod figures;
#[doc(hidden)]
pub mod file;
mod lengths;
mod loops;
mod options;
mod request;
#[doc(hidden)]
pub mod routes;
mod slots;
mod spec;
mod summary;
mod view;

pub use options::request;
pub use request::ExchangeRequest;
pub use slots::{Rule, Slots, Transfer};
pub use spec::{Exchange, Spec};
pub use summary::Between;
