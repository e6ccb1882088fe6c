//! `synthetic`: messages with known delays, stalls, loss, duplicates, reordering, asymmetry, clock
//! offset and drift, on a virtual clock: the transport on which the self-test has known answers.
//!
//! One process runs both roles one after the other. The client's endpoint simulates the way there,
//! the answer and the way back, and keeps what arrived at the server and when; the server's
//! endpoint replays it. Time passes only when an end polls or idles, so a stall of 100 ms costs
//! nothing, and the same seed gives the same run.

mod spec;
mod world;

pub use spec::{Delay, Slow, Synthetic};
pub use world::{SyntheticEndpoint, clock};

use super::*;
use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use wiregauge_base::options::OptionDef;
use world::World;

const SYNTHETIC: OptionDef = OptionDef::parsed::<Synthetic>(
    "synthetic",
    "Simulated behaviour, such as 'normal(1us,300ns) loss(1%)'",
)
.metavar("SPEC")
.default("normal(1us,100ns)");

thread_local! {
    /// The world that the client's end has opened last on this thread.
    static WORLD: RefCell<Option<Arc<Mutex<World>>>> = const { RefCell::new(None) };
}

/// The synthetic transport.
pub const DESCRIPTOR: Descriptor = Descriptor {
    about: "simulated delays, stalls, loss, duplicates, reordering and clocks, all seeded",
    largest: 64 << 10,
    traffic: &[Traffic::Echo { every: 1 }, Traffic::Forward],
    loses: true,
    ordered: false,
    one_process: true,
    settings: &[SYNTHETIC],
    path: "a simulation on a virtual clock",
    virtual_clock: Some(clock),
    ..Descriptor::opened_by(open)
};

fn open(setup: &Setup) -> Result<Opening> {
    if setup.lengths == Lengths::Varied {
        let sentence = "synthetic does not support messages of different lengths";
        return Err(SetupError::Refused(sentence.into()));
    }
    let world = match setup.role {
        Role::Client | Role::Node => {
            let world = Arc::new(Mutex::new(World::new(setup)));
            WORLD.with_borrow_mut(|last| *last = Some(Arc::clone(&world)));
            world
        }
        Role::Server => WORLD.with_borrow_mut(Option::take).ok_or_else(|| {
            SetupError::Refused(
                "synthetic: the server runs after its client, in one process".into(),
            )
        })?,
    };
    let setup = setup.clone();
    Ok(Opening::new(Blob::default(), move |_| {
        Ok(Connected::new(SyntheticEndpoint::new(world, &setup)))
    }))
}
