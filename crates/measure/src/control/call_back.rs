//! How agents that a launcher has started reach their controller: a socket in the abstract
//! namespace of this host, whose random name stands in their environment beside the secret.

use super::protocol::SECRET_VARIABLE;
use super::secret;
use serde::{Deserialize, Serialize};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};

/// Environment variable with the name of the controller's socket.
pub const CALL_BACK_VARIABLE: &str = "WIREGAUGE_CALL_BACK";
/// Where launchers say which rank a process has: Open MPI's, PRRTE's and others' of PMIx, Hydra's
/// and others' of PMI, Slurm's.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"];

/// The first frame of an agent to its controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Greeting {
    /// The secret of the launch.
    pub secret: [u8; 32],
    /// Its rank.
    pub rank: u32,
}

/// A connection to the controller, and what is to be said first.
pub struct CallBack {
    /// The connection.
    pub socket: UnixStream,
    /// The greeting.
    pub greeting: Greeting,
}

/// The name of the socket, where this process was started by a launcher.
pub fn asked() -> Option<String> {
    std::env::var(CALL_BACK_VARIABLE).ok()
}

/// The address of a name.
pub fn address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(name)
}

/// Reaches the controller.
pub fn reach(name: &str) -> io::Result<CallBack> {
    let known = std::env::var(SECRET_VARIABLE).ok().and_then(|hex| secret::from_hex(&hex));
    let rank = RANKS.iter().find_map(|name| std::env::var(name).ok()?.parse().ok());
    let (Some(secret), Some(rank)) = (known, rank) else {
        return Err(io::Error::other("the launcher gives no rank in the environment"));
    };
    let socket = UnixStream::connect_addr(&address(name)?)?;
    Ok(CallBack { socket, greeting: Greeting { secret, rank } })
}
