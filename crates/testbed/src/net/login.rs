//! What makes every host reachable by ssh under its name: keys, and the configuration of both
//! sides, in one folder that all hosts see as `/etc/ssh`.

use super::super::tools::{call, command, search_path};
use fs_err as fs;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// Where a host finds what is written here.
const AT: &str = "/etc/ssh";

/// Fills a folder.
pub fn prepare(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder)?;
    for key in ["host", "user"] {
        let mut keygen = command("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "wiregauge testbed net", "-f"]);
        call(keygen.arg(folder.join(key)), "")?;
    }
    let host_key = fs::read_to_string(folder.join("host.pub"))?;
    fs::write(folder.join("sshd_config"), sshd_config())?;
    fs::write(folder.join("ssh_config"), ssh_config())?;
    fs::write(folder.join("known_hosts"), format!("wg-h*,198.18.0.* {host_key}"))
}

/// Where programs are looked for in every host: this one first, so that all hosts have the same.
pub fn programs() -> OsString {
    let own = std::env::current_exe().ok();
    let own = own.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let path = search_path();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).unwrap_or(path)
}

fn sshd_config() -> String {
    let path = programs();
    let plain = path.to_str().filter(|path| !path.contains(['"', '\\', '\n']));
    let environment = plain.map(|path| format!("SetEnv \"PATH={path}\"\n"));
    let environment = environment.unwrap_or_default();
    format!(
        "Port 22\nListenAddress 0.0.0.0\nHostKey {AT}/host\nAuthorizedKeysFile {AT}/user.pub\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n\
         UseDNS no\nPidFile none\nLogLevel ERROR\nMaxStartups 200\n{environment}"
    )
}

/// By what a name of the user's own configuration comes to, hence no `Host`.
fn ssh_config() -> String {
    format!(
        "Match host wg-h*,198.18.0.*\n  User root\n  IdentityFile {AT}/user\n  \
         IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile /dev/null\n  \
         GlobalKnownHostsFile {AT}/known_hosts\n  StrictHostKeyChecking yes\n"
    )
}
