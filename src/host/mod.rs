//! The machine: pinning, memory locking, the noise floor, and the fingerprint of rule 22.

pub mod interrupt;
mod affinity;
mod memory;
mod noise;
mod tree;
mod usage;

pub use affinity::{Choice, CpuError, allowed_cpus, check_pair, choose_pair, pin_to};
pub use memory::{LockError, lock, touch};
pub use noise::{Noise, observe, spin};
pub use tree::{Tree, format_cpus, parse_cpus};
pub use usage::ResourceUse;

use serde::{Deserialize, Serialize};

/// What a result depends on (rule 22), as far as this host shows it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Host name.
    pub host: String,
}
/// x
pub struct Concern {
    /// x
    pub kind: &'static str,
    /// x
    pub text: String }
impl Environment {
    /// x
    pub fn capture(_: &[u32]) -> Self { Environment::default() }
    /// x
    pub fn concerns(&self, _: &[u32]) -> Vec<Concern> { Vec::new() }
}
/// The CPU of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuPair {
    /// CPU of the client.
    pub client: u32,
    /// CPU of the server.
    pub server: u32,
}
