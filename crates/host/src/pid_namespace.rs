//! A PID namespace for children and all that they start: it ends with its owner, however that ends.

use crate::child::{OwnedChild, ends_with_us};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::process::{Command, Stdio};

/// Init of the namespace: it takes in the processes whose parents have ended, and ends where its
/// input does. Its owner holds the other end, and the kernel kills it with its owner, too.
const INIT: &str = "exec 3<&0; cat <&3 >/dev/null & wait $!";

/// A PID namespace. Every process that this thread starts until this is dropped is in it; then all
/// that are left are killed. No thread can be started meanwhile.
#[derive(Debug)]
pub struct PidNamespace {
    own: File,
    _init: OwnedChild,
}

impl PidNamespace {
    /// Makes one. Call this from the main thread: the namespace ends with the thread.
    ///
    /// # Errors
    /// The kernel makes none: it takes CAP_SYS_ADMIN.
    pub fn enter() -> io::Result<PidNamespace> {
        let own = File::open("/proc/self/ns/pid")?;
        unshare(CloneFlags::CLONE_NEWPID)?;
        let mut init = Command::new("sh");
        init.args(["-c", INIT]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        match ends_with_us(&mut init).spawn() {
            Ok(init) => Ok(PidNamespace { own, _init: OwnedChild(init) }),
            Err(error) => {
                setns(&own, CloneFlags::CLONE_NEWPID)?;
                Err(error)
            }
        }
    }
}

impl Drop for PidNamespace {
    fn drop(&mut self) {
        // Fails never: it is this process's own. Init is killed afterwards.
        let _ = setns(&self.own, CloneFlags::CLONE_NEWPID);
    }
}
