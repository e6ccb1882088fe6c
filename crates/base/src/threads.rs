//! Threads of this program. All are started here, so that one that the system refuses is an error
//! with a sentence, and no panic of `std::thread::spawn`.

use std::io;
use std::path::Path;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

/// Starts a thread. `purpose` completes "cannot start a thread to ...".
///
/// # Errors
/// The system starts no further one.
pub fn spawn<T: Send + 'static>(
    purpose: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // Without a name of its own it has that of the program, as the kernel shows it.
    Builder::new().spawn(work).map_err(|error| refused(purpose, &error))
}

/// Starts a thread as [`spawn`], with the name that the kernel shows.
///
/// # Errors
/// As of [`spawn`].
pub fn spawn_named<T: Send + 'static>(
    purpose: &str,
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let named = Builder::new().name(name.into());
    named.spawn(work).map_err(|error| refused(purpose, &error))
}

/// Starts a thread as [`spawn`], which ends with a scope.
///
/// # Errors
/// As of [`spawn`].
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    purpose: &str,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    Builder::new().spawn_scoped(scope, work).map_err(|error| refused(purpose, &error))
}

/// Starts a thread as [`spawn_scoped`], with a stack of this many bytes.
///
/// # Errors
/// As of [`spawn`].
pub fn spawn_scoped_with_stack<'scope, T: Send + 'scope>(
    purpose: &str,
    stack_bytes: usize,
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let sized = Builder::new().stack_size(stack_bytes);
    sized.spawn_scoped(scope, work).map_err(|error| refused(purpose, &error))
}

fn refused(purpose: &str, error: &io::Error) -> io::Error {
    let sentence = format!("cannot start a thread to {purpose}: {}", explain_limit(error));
    io::Error::new(error.kind(), sentence)
}

/// Returns an error of a new thread or process with the limits that hold for both, where it is one
/// of these.
pub fn explain_limit(error: &io::Error) -> String {
    // EAGAIN is also the answer where there is no memory for a stack.
    if error.kind() != io::ErrorKind::WouldBlock {
        return error.to_string();
    }
    let limits = limits(Path::new("/"));
    if limits.is_empty() {
        return format!("{error}: there is no memory for its stack, or a limit is reached");
    }
    format!("{error}; limits of processes and threads here: {limits}: raise them, or use fewer")
}

/// Words of the system for no limit.
const NONE: [&str; 2] = ["unlimited", "max"];

/// Lists the limits of threads that are in force, by the system whose files are below `root`.
fn limits(root: &Path) -> String {
    let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap_or_default();
    let mut all: Vec<String> = Vec::new();
    let own = read("proc/self/limits");
    let of_user = own.lines().find_map(|line| line.strip_prefix("Max processes"));
    if let Some(limit) = of_user.and_then(|line| line.split_whitespace().next()) {
        all.extend(described(limit, "of this user (ulimit -u)"));
    }
    for (limit, folder) in cgroup_limits(&read("proc/self/cgroup"), &read) {
        let of_cgroup = format!("in the cgroup {folder} (pids.max; TasksMax= of a service)");
        all.extend(described(&limit, &of_cgroup));
    }
    all.extend(described(
        &read("proc/sys/kernel/threads-max"),
        "on this host (kernel.threads-max)",
    ));
    all.join(", ")
}

fn described(limit: &str, whose: &str) -> Option<String> {
    let limit = limit.trim();
    (!limit.is_empty() && !NONE.contains(&limit)).then(|| format!("{limit} {whose}"))
}

/// Returns the limit of each cgroup that this process is in, with its folder.
fn cgroup_limits(own: &str, read: &impl Fn(&str) -> String) -> Vec<(String, String)> {
    // `0::/PATH` is that of version 2, `8:pids:/PATH` that of version 1.
    let is_for_threads =
        |names: &str| names.is_empty() || names.split(',').any(|one| one == "pids");
    let paths = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let names = parts.next()?;
        is_for_threads(names).then_some((names, parts.next()?))
    });
    let mut found = Vec::new();
    for (names, path) in paths {
        let mount = if names.is_empty() { "sys/fs/cgroup" } else { "sys/fs/cgroup/pids" };
        // In a container the path may be one outside of it: its own root has the limit then.
        for parent in Path::new(path).ancestors().take(MAX_CGROUP_DEPTH) {
            let folder = format!("{mount}{}", parent.display());
            let limit = read(&format!("{}/pids.max", folder.trim_end_matches('/')));
            if !limit.is_empty() {
                found.push((limit.trim().into(), format!("/{}", folder.trim_end_matches('/'))));
            }
        }
    }
    found
}

/// Cgroups of a path that are read: systemd's and a container's are six deep at most.
const MAX_CGROUP_DEPTH: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads these files below a root.
    fn read(files: &[(&str, &str)]) -> impl Fn(&str) -> String {
        let files: Vec<(String, String)> =
            files.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        move |name| {
            let found = files.iter().find(|(file, _)| file == name);
            found.map(|(_, text)| text.clone()).unwrap_or_default()
        }
    }

    #[test]
    fn limit_of_each_cgroup_is_found_in_both_versions() {
        let files = [
            ("sys/fs/cgroup/system.slice/agent.service/pids.max", "26\n"),
            ("sys/fs/cgroup/system.slice/pids.max", "max\n"),
            ("sys/fs/cgroup/pids/a/pids.max", "7\n"),
        ];
        let read = read(&files);
        let second = cgroup_limits("0::/system.slice/agent.service\n", &read);
        let expected = [("26", "agent.service"), ("max", "system.slice")];
        assert_eq!(second.len(), expected.len(), "{second:?}");
        for ((limit, folder), (known, end)) in second.iter().zip(expected) {
            assert!(limit == known && folder.ends_with(end), "{second:?}");
        }
        let first = cgroup_limits("9:name=systemd:/a\n8:cpu,pids:/a/b\n7:memory:/a\n", &read);
        assert_eq!(first, [("7".to_string(), "/sys/fs/cgroup/pids/a".to_string())]);
        assert!(cgroup_limits("noise\n\n1:\n", &read).is_empty());
    }

    #[test]
    fn a_refused_thread_names_its_purpose_and_the_limits() {
        let error = refused("read an agent's messages", &io::Error::from_raw_os_error(11));
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let sentence = error.to_string();
        assert!(sentence.starts_with("cannot start a thread to read an agent's messages: "));
        assert!(sentence.contains("(kernel.threads-max)"), "{sentence}");
        assert_eq!(explain_limit(&io::ErrorKind::NotFound.into()), "entity not found");
    }
}
