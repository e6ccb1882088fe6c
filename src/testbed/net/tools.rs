//! The programs that make a network testbed.

use super::super::error::TestbedError;
use super::super::tools::{find, lacking};
use std::path::PathBuf;

/// Their paths.
#[derive(Debug)]
pub struct NetTools {
    pub ip: PathBuf,
    pub tc: PathBuf,
    pub unshare: PathBuf,
    pub sshd: PathBuf,
    /// ssh-keygen.
    pub keygen: PathBuf,
}

impl NetTools {
    /// Finds them all.
    pub fn find() -> Result<NetTools, TestbedError> {
        let mut missing = Vec::new();
        let mut need = |program: &'static str, package: &'static str| {
            find(program).unwrap_or_else(|| {
                missing.push((program, package));
                PathBuf::new()
            })
        };
        let tools = NetTools {
            ip: need("ip", "iproute2"),
            tc: need("tc", "iproute2"),
            unshare: need("unshare", "util-linux"),
            sshd: need("sshd", "openssh-server"),
            keygen: need("ssh-keygen", "openssh-client"),
        };
        need("ssh", "openssh-client");
        match missing.is_empty() {
            true => Ok(tools),
            false => Err(lacking(&missing)),
        }
    }
}
