//! Operations in which all ranks take part: barrier, allreduce, alltoall and the like.
//!
//! Every rank is one process. Before each operation all agree on an instant of common time at which
//! they enter it; its time is from the first entry to the last exit.

mod contents;
mod execution;
mod figures;
mod loops;
mod spec;
mod summary;
mod view;

pub use figures::of_ranks;
pub use spec::{Collective, CollectiveRequest, Spec, Sync, request};
pub use wiregauge_transport::collectives::CollectiveOperation;
