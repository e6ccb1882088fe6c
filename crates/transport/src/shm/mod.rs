//! `shm`: a lock-free ring each way in shared memory.
//!
//! * Control: this file, and [`region`], the memory.
//! * Data: [`endpoint`] by the protocol of [`ring`].
//!
//! A message is copied once into the ring and once out of it, as a program would that keeps its
//! messages: what is measured is a hand-over, not a pointer. To sleep, a process waits on a futex
//! that the other rings; between two busy ends nothing is ever rung.

pub mod endpoint;
pub mod region;
pub mod ring;

use super::*;
pub use endpoint::ShmEndpoint;
use region::{Layout, Region};
use std::sync::Arc;
use wiregauge_base::units::Bytes;

/// The shared-memory transport.
pub const DESCRIPTOR: Descriptor = Descriptor {
    about: "a lock-free ring each way in shared memory, between two processes",
    largest: Bytes::MIB.0 * 16,
    in_survey: true,
    kernel_path: KernelPath::Bypassed,
    path: "a copy into the ring, a cache-line hand-over, a copy out of it",
    // Both ends map the same.
    least_buffer_bytes: |setup| (Layout::of(setup).total_bytes() / 2) as u64,
    available,
    ..Descriptor::opened_by(open)
};

fn available(_: &Settings) -> Result<(), String> {
    let made = Region::create(Layout::of_stream(8));
    made.map(drop).map_err(|error| error.to_string())
}

fn open(setup: &Setup) -> Result<Opening> {
    let (layout, setup) = (Layout::of(setup), setup.clone());
    if setup.role == Role::Client {
        return Ok(Opening::new(Blob::default(), move |other| {
            Ok(connected(Region::adopt(other.text()?, layout)?, &setup))
        }));
    }
    let region = Region::create(layout)?;
    Ok(Opening::new(Blob(region.path().into_bytes()), move |_| Ok(connected(region, &setup))))
}

fn connected(region: Arc<Region>, setup: &Setup) -> Connected {
    let Layout { cells, stride } = region.layout;
    let effective_settings =
        vec![("ring_cells".into(), cells.to_string()), ("cell_bytes".into(), stride.to_string())];
    Connected { effective_settings, ..Connected::new(ShmEndpoint::new(region, setup)) }
}
