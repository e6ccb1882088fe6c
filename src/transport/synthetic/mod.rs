//! `synthetic`: messages with known delays, stalls, loss, duplicates, reordering, asymmetry, clock
//! offset and drift, on a virtual clock: the transport on which the self-test knows the answers.
//!
//! One process plays both roles one after the other. The client's endpoint simulates the way there,
//! the answer and the way back, and keeps what arrived at the server and when; the server's
//! endpoint replays it. Time passes only when an end polls or idles, so a stall of 100 ms costs
//! nothing, and the same seed gives the same run.

mod spec;
mod world;

pub use spec::{Delay, Slow, Synthetic};
pub use world::{SyntheticEndpoint, clock};

use super::null::NullEndpoint;
use super::*;
use crate::options::OptionDef;
use std::cell::RefCell;
use std::rc::Rc;
use world::World;

/// The synthetic transport.
pub struct Simulated;

/// One end before it is connected: both share a world.
pub struct SyntheticOpening {
    world: Rc<RefCell<World>>,
    setup: Setup,
}

thread_local! {
    /// The world that the client's end has opened last on this thread.
    static WORLD: RefCell<Option<Rc<RefCell<World>>>> = const { RefCell::new(None) };
}

impl Transport for Simulated {
    type Opening = SyntheticOpening;

    const DESCRIPTOR: Descriptor = Descriptor {
        about: "simulated delays, stalls, loss, duplicates, reordering and clocks, all seeded",
        largest: 64 << 10,
        traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward],
        loses: true,
        ordered: false,
        one_process: true,
        between_hosts: false,
        samples_only: false,
        watchable: false,
        settings: &[OptionDef::parsed::<Synthetic>(
            "synthetic",
            "Simulated behaviour, such as 'normal(1us,300ns) loss(1%)'",
        )
        .metavar("SPEC")
        .default("normal(1us,100ns)")],
        path: "a simulation on a virtual clock",
    };

    fn available() -> Result<(), String> {
        Ok(())
    }

    fn open(setup: &Setup) -> Result<SyntheticOpening, SetupError> {
        let world = match setup.role {
            Role::Client => {
                let world = Rc::new(RefCell::new(World::new(setup)));
                WORLD.with_borrow_mut(|last| *last = Some(Rc::clone(&world)));
                world
            }
            Role::Server => WORLD.with_borrow_mut(Option::take).ok_or_else(|| {
                SetupError::Refused(
                    "the synthetic transport's server plays after its client, in one process"
                        .into(),
                )
            })?,
        };
        Ok(SyntheticOpening { world, setup: setup.clone() })
    }

    fn granted(_: &SyntheticEndpoint) -> Vec<(String, String)> {
        Vec::new()
    }
}

impl Opening for SyntheticOpening {
    type Endpoint = SyntheticEndpoint;

    fn address(&self) -> Blob {
        Blob::default()
    }

    fn connect(self, _: &Blob) -> Result<SyntheticEndpoint, SetupError> {
        Ok(SyntheticEndpoint::new(self.world, &self.setup))
    }

    // Never made: what it simulates has one size.
    type Varied = NullEndpoint;

    fn connect_varied(self, _: &Blob) -> Result<Varied<NullEndpoint>, SetupError> {
        Err(SetupError::Refused("the synthetic transport's messages have one size".into()))
    }
}
