//! `shm`: a lock-free ring each way in POSIX shared memory.
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
use crate::units::Bytes;
pub use endpoint::ShmEndpoint;
use region::{Layout, Region};
use std::sync::Arc;

/// The shared-memory transport.
pub struct Shm;

/// One end before it is connected: the server has made the memory.
pub struct ShmOpening {
    made: Option<Made>,
    setup: Setup,
}

/// Memory with its name, which is removed when the owner goes, whoever has mapped it by then.
struct Made {
    name: String,
    region: Arc<Region>,
}

impl Drop for Made {
    fn drop(&mut self) {
        Region::forget(&self.name);
    }
}

const DESCRIPTOR: Descriptor = Descriptor {
    about: "a lock-free ring each way in POSIX shared memory, between two processes",
    largest: Bytes::MIB.0 * 16,
    in_survey: true,
    path: "a copy into the ring, a cache-line hand-over, a copy out of it",
    ..Descriptor::BASE
};

impl Transport for Shm {
    fn descriptor(&self) -> &'static Descriptor {
        &DESCRIPTOR
    }

    fn available(&self) -> Result<(), String> {
        let name = random_name().map_err(|error| error.to_string())?;
        let made = Region::create(&name, Layout::for_size(8, Layout::MOST_CELLS));
        Region::forget(&name);
        made.map(drop).map_err(|error| format!("{error} (is /dev/shm mounted and writable?)"))
    }

    fn open(&self, setup: &Setup) -> Result<Box<dyn Opening>, SetupError> {
        let made = match setup.role {
            Role::Client => None,
            Role::Server => {
                let name = random_name()?;
                let region = Region::create(&name, Layout::of(setup))?;
                Some(Made { name, region })
            }
        };
        Ok(Box::new(ShmOpening { made, setup: setup.clone() }))
    }
}

fn random_name() -> Result<String, SetupError> {
    Ok(format!("/{}", setup::random_name()?))
}

impl Opening for ShmOpening {
    fn address(&self) -> Blob {
        Blob(self.made.as_ref().map(|made| made.name.clone().into_bytes()).unwrap_or_default())
    }

    fn connect(self: Box<Self>, other: &Blob) -> Result<Connected, SetupError> {
        let setup = self.setup;
        let region = match &self.made {
            Some(made) => Arc::clone(&made.region),
            None => Region::adopt(other.text()?, Layout::of(&setup))?,
        };
        let layout = region.layout();
        let effective_settings = vec![
            ("ring_cells".into(), layout.cells.to_string()),
            ("cell_bytes".into(), layout.stride.to_string()),
        ];
        let endpoint = ShmEndpoint::new(region, &setup, self.made);
        Ok(Connected { effective_settings, ..Connected::new(endpoint) })
    }
}
