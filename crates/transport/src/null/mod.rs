//! `null`: no transport at all. A message arrives as it is posted, so what a pattern measures on it
//! is the instrument: the loop, the clock's readings, the recorder.

mod endpoint;

use super::*;
pub use endpoint::NullEndpoint;
use wiregauge_base::units::Bytes;

/// The null transport. The one process that opens it plays the client; the answer is the message.
pub const DESCRIPTOR: Descriptor = Descriptor {
    about: "no transport: a message arrives as it is posted (measures the instrument overhead)",
    largest: Bytes::MIB.0,
    traffic: &[Traffic::Echo { every: 1 }],
    one_process: true,
    path: "nothing but the loop itself",
    ..Descriptor::opened_by(open)
};

fn open(setup: &Setup) -> Result<Opening> {
    let endpoint = NullEndpoint::new(setup);
    Ok(Opening::new(Blob::default(), |_| Ok(Connected::new(endpoint))))
}
