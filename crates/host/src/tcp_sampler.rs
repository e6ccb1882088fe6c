//! Events of TCP on the connections of this program's processes: the kernel is asked for their
//! counters once in a millisecond (`sock_diag(7)`), by a thread of its own that needs no privilege.

use super::netlink::{self, attribute, word};
use nix::sys::socket::SockProtocol;
use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wiregauge_base::threads;

// include/uapi/linux/sock_diag.h, inet_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INFO: u16 = 2;
/// Bytes of `struct inet_diag_req_v2`, and of `struct inet_diag_msg`.
const REQUEST: usize = 56;
const ANSWER: usize = 72;
const INODE_AT: usize = 68;
/// TCP_ESTABLISHED of `include/net/tcp_states.h`, as a bit.
const ESTABLISHED: u32 = 1 << 1;

/// The least time from one look to the next.
const PERIOD: Duration = Duration::from_millis(1);
/// A look may take this share of the time, on a host of many connections.
const DUTY: u32 = 10;
/// The most events of a round that are kept.
const MAX_EVENTS: usize = 1 << 16;
/// Looks after which a connection without a measuring thread is another program's. At the first one
/// it may not be in the thread's table yet: the kernel accepts it before it has a descriptor.
const MAX_LOOKS: u32 = 64;
/// The most processes whose connections are looked for.
const MAX_PROCESSES: usize = 256;

/// A kind of event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEventKind {
    /// Segments were sent again.
    Resent,
    /// The other end had no room for more.
    ReceiveWindow,
    /// The send buffer was full.
    SendBuffer,
}

/// An event of a connection between two looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpEvent {
    /// The last look before it, in nanoseconds of CLOCK_MONOTONIC.
    pub from_ns: u64,
    /// The first look behind it.
    pub to_ns: u64,
    /// The kind.
    pub kind: TcpEventKind,
    /// Segments that were sent again, or nanoseconds for which the connection was held back.
    pub amount: u64,
    /// The thread whose connection it is.
    pub owner: Owner,
}

/// A measuring thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// True for a thread of a client, false for one of a server.
    pub is_client: bool,
    /// Number of the thread in its process.
    pub thread: u32,
}

impl Owner {
    /// Reads the name of a measuring thread: `wg-client-0`.
    fn of_name(name: &str) -> Option<Owner> {
        let (role, thread) = name.trim().strip_prefix("wg-")?.split_once('-')?;
        let is_client = role == "client";
        let thread = thread.parse().ok()?;
        (is_client || role == "server").then_some(Owner { is_client, thread })
    }
}

/// The counters of a connection at one look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    resent: u64,
    receive_window_us: u64,
    send_buffer_us: u64,
}

impl State {
    /// Reads `struct tcp_info` by its places; those that an older kernel lacks are 0.
    fn of_info(info: &[u8]) -> State {
        State {
            resent: word(info, 100).unwrap_or(0).into(),
            receive_window_us: long(info, 176),
            send_buffer_us: long(info, 184),
        }
    }

    /// Returns what has happened since, as kinds and amounts.
    fn since(&self, before: &State) -> Vec<(TcpEventKind, u64)> {
        let held = self.receive_window_us.saturating_sub(before.receive_window_us);
        let full = self.send_buffer_us.saturating_sub(before.send_buffer_us);
        let all = [
            (TcpEventKind::Resent, self.resent.saturating_sub(before.resent)),
            (TcpEventKind::ReceiveWindow, held.saturating_mul(1000)),
            (TcpEventKind::SendBuffer, full.saturating_mul(1000)),
        ];
        all.into_iter().filter(|(_, amount)| *amount > 0).collect()
    }
}

fn long(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok());
    found.map_or(0, u64::from_ne_bytes)
}

/// Looks at the connections of the processes that this one has started, until it is told to end.
pub struct TcpSampler {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Vec<TcpEvent>>,
}

impl TcpSampler {
    /// Begins.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start() -> std::io::Result<TcpSampler> {
        let ends = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ends);
        let thread = threads::spawn_named("sample TCP's counters", "wg-tcp", move || {
            Watched::default().run(&told)
        })?;
        Ok(TcpSampler { ends, thread })
    }

    /// Ends, and returns what was seen in the order of time.
    pub fn finish(self) -> Vec<TcpEvent> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// The connections that were seen.
#[derive(Default)]
struct Watched {
    /// The last state of each by its inode, its owner, and when that was.
    own: BTreeMap<u32, (State, Owner, u64)>,
    /// Connections of which no measuring thread is known, with the looks that have met them.
    others: BTreeMap<u32, u32>,
    events: Vec<TcpEvent>,
}

impl Watched {
    fn run(mut self, ends: &AtomicBool) -> Vec<TcpEvent> {
        while !ends.load(Ordering::Relaxed) {
            let begin = Instant::now();
            let at_ns = monotonic_ns();
            self.compare_states(connections(), at_ns, owners);
            let took = begin.elapsed();
            std::thread::sleep(PERIOD.saturating_sub(took).max(took * DUTY));
        }
        self.events
    }

    /// Takes the connections of one look; `owners` is asked where one may be of a measuring thread.
    fn compare_states(
        &mut self,
        found: Vec<(u32, State)>,
        at_ns: u64,
        owners: impl FnOnce() -> BTreeMap<u32, Owner>,
    ) {
        let mut unknown = Vec::new();
        for (inode, state) in found {
            if let Some((last, owner, from_ns)) = self.own.get_mut(&inode) {
                let owner = *owner;
                let from_ns = std::mem::replace(from_ns, at_ns);
                let last = std::mem::replace(last, state);
                for (kind, amount) in state.since(&last) {
                    if self.events.len() < MAX_EVENTS {
                        self.events.push(TcpEvent { from_ns, to_ns: at_ns, kind, amount, owner });
                    }
                }
            } else {
                let looks = self.others.entry(inode).or_default();
                *looks = looks.saturating_add(1);
                if *looks <= MAX_LOOKS && looks.is_power_of_two() {
                    unknown.push((inode, state));
                }
            }
        }
        if unknown.is_empty() {
            return;
        }
        let owners = owners();
        for (inode, state) in unknown {
            if let Some(owner) = owners.get(&inode) {
                self.others.remove(&inode);
                self.own.insert(inode, (state, *owner, at_ns));
            }
        }
    }
}

/// Returns the inode and the state of each established connection of this network namespace.
fn connections() -> Vec<(u32, State)> {
    let mut all = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut request = [0u8; REQUEST];
        request[0] = family as u8;
        request[1] = libc::IPPROTO_TCP as u8;
        request[2] = 1 << (INFO - 1);
        request[4..8].copy_from_slice(&ESTABLISHED.to_ne_bytes());
        let protocol = SockProtocol::NetlinkSockDiag;
        let _ = netlink::dump(protocol, SOCK_DIAG_BY_FAMILY, &request, |_, body| {
            all.extend(connection(body));
        });
    }
    all
}

/// Returns what happened to a connection since it began, for the fuzz targets alone.
pub(super) fn events_so_far(body: &[u8]) -> Vec<(TcpEventKind, u64)> {
    connection(body).map(|(_, state)| state.since(&State::default())).unwrap_or_default()
}

fn connection(body: &[u8]) -> Option<(u32, State)> {
    let info = attribute(body.get(ANSWER..)?, INFO)?;
    // One that was not accepted yet has no inode.
    let inode = word(body, INODE_AT).filter(|inode| *inode != 0)?;
    Some((inode, State::of_info(info)))
}

/// Returns the measuring threads of the processes that this one has started, by the inodes of their
/// sockets.
fn owners() -> BTreeMap<u32, Owner> {
    let mut all = BTreeMap::new();
    for process in children().into_iter().take(MAX_PROCESSES) {
        // A measuring thread has a table of descriptors of its own.
        for thread in threads(process) {
            let name = std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
            if let Some(owner) = Owner::of_name(&name) {
                all.extend(inodes(&thread).map(|inode| (inode, owner)));
            }
        }
    }
    all
}

/// Returns the inodes of a thread's sockets.
fn inodes(thread: &Path) -> impl Iterator<Item = u32> {
    let descriptors = std::fs::read_dir(thread.join("fd")).into_iter().flatten().flatten();
    let files = descriptors.filter_map(|entry| std::fs::metadata(entry.path()).ok());
    // Inodes of other file systems may have the same numbers.
    let sockets = files.filter(|file| file.file_type().is_socket());
    sockets.filter_map(|socket| socket.ino().try_into().ok())
}

/// Returns the folders of a process's threads.
fn threads(process: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Returns the processes that this one has started.
fn children() -> Vec<u32> {
    let mut all = Vec::new();
    for thread in threads(std::process::id()) {
        let list = std::fs::read_to_string(thread.join("children")).unwrap_or_default();
        all.extend(list.split_whitespace().filter_map(|process| process.parse::<u32>().ok()));
    }
    all
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds, by which the kernel stamps.
fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    #[test]
    fn own_connections_are_found_by_their_inodes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let inode = rustix::fs::fstat(client.as_fd()).unwrap().st_ino as u32;
        let all = connections();
        assert!(all.iter().any(|(own, _)| *own == inode), "{inode} of {} is missing", all.len());
        // This process did not start itself.
        assert_eq!(owners().get(&inode), None);
        let own = Path::new("/proc/thread-self");
        assert!(inodes(own).any(|found| found == inode));
    }

    #[test]
    fn what_moved_between_two_looks_is_an_event() {
        let mut watched = Watched::default();
        let first = State { resent: 1, ..State::default() };
        let owner = Owner::of_name("wg-client-3\n").unwrap();
        assert_eq!(owner, Owner { is_client: true, thread: 3 });
        assert_eq!(Owner::of_name("wg-tcp"), None);
        watched.own.insert(7, (first, owner, 1000));
        let second = State { resent: 3, receive_window_us: 200, send_buffer_us: 0 };
        watched.compare_states(vec![(7, second)], 2000, BTreeMap::new);
        watched.compare_states(vec![(7, second)], 3000, BTreeMap::new);
        let expected = [(TcpEventKind::Resent, 2), (TcpEventKind::ReceiveWindow, 200_000)]
            .map(|(kind, amount)| TcpEvent { from_ns: 1000, to_ns: 2000, kind, amount, owner });
        assert_eq!(watched.events, expected);
        assert!(watched.others.is_empty());
        // More than the kernel counts in any time.
        let most = State { receive_window_us: u64::MAX, ..State::default() };
        assert_eq!(most.since(&first), [(TcpEventKind::ReceiveWindow, u64::MAX)]);
        let mut info = vec![0; 104];
        info[100..104].copy_from_slice(&9u32.to_ne_bytes());
        assert_eq!(State::of_info(&info), State { resent: 9, ..State::default() });
    }

    #[test]
    fn a_connection_whose_thread_is_seen_later_is_watched() {
        let mut watched = Watched::default();
        let owner = Owner { is_client: false, thread: 0 };
        let before = State::default();
        let after = State { resent: 1, ..before };
        watched.compare_states(vec![(7, before), (8, before)], 1000, BTreeMap::new);
        watched
            .compare_states(vec![(7, before), (8, before)], 2000, || BTreeMap::from([(7, owner)]));
        watched.compare_states(vec![(7, after), (8, after)], 3000, BTreeMap::new);
        let kind = TcpEventKind::Resent;
        let expected = TcpEvent { from_ns: 2000, to_ns: 3000, kind, amount: 1, owner };
        assert_eq!(watched.events, [expected]);
        // In the end, another program's connections are no longer looked for.
        let mut asked = 0;
        for at_ns in 0..10 * u64::from(MAX_LOOKS) {
            watched.compare_states(vec![(8, after)], at_ns, || {
                asked += 1;
                BTreeMap::new()
            });
        }
        assert_eq!(asked, 5);
    }
}
