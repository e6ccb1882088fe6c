//! A network of Homa sockets in memory, with the rules of the kernel's: pages belong to the program
//! from the receive that hands them over to the one that takes them back, ids are even at the
//! client and odd at the server, a request is answered once.

use super::abi::{BPAGE, ReceiveArgs, SendArgs, is_request};
use super::socket::{Calls, Received};
use memmap2::{MmapOptions, MmapRaw};
use rustix::event::PollFlags;
use rustix::io::Errno;
use socket2::SockAddr;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Pages of a fake's region.
const PAGES: usize = 40;

/// What lies in a socket's queue.
enum Queued {
    Message { id: u64, cookie: u64, from: SocketAddr, bytes: Vec<u8> },
    Failed { id: u64, cookie: u64, errno: Errno },
}

/// One socket as its network sees it.
#[derive(Default)]
struct Port {
    queue: VecDeque<Queued>,
    /// Pages in the order in which they are given out.
    free: VecDeque<u32>,
    /// Pages that are the program's.
    held: Vec<u32>,
    /// What the next calls fail with, before anything is done.
    refused: VecDeque<Errno>,
    /// Pages that were given back, in all.
    returned: usize,
}

/// All sockets, and the requests that are open: id (even), client and its cookie.
#[derive(Default)]
pub struct Network {
    ports: HashMap<SocketAddr, Port>,
    open: HashMap<u64, (SocketAddr, u64)>,
    last_id: u64,
    /// The ids that were answered, in the order of the answers.
    pub answered: Vec<u64>,
}

/// A network that sockets in several threads share.
#[derive(Clone, Default)]
pub struct Net(Arc<Mutex<Network>>);

/// A socket of it.
#[derive(Clone)]
pub struct Fake {
    net: Net,
    own: SocketAddr,
    /// Memory that the kernel and the handles of a socket share: each page is the kernel's or one
    /// handle's at a time, and the network's lock is between.
    region: Arc<MmapRaw>,
}

impl Net {
    pub fn lock(&self) -> MutexGuard<'_, Network> {
        // A test that has failed with it in hand is to say so, and not to abort.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A socket at this address, which gives its pages out in this order.
    pub fn socket(&self, own: &str, pages: impl IntoIterator<Item = u32>) -> Fake {
        let own: SocketAddr = own.parse().unwrap();
        let free = pages.into_iter().map(|page| page * BPAGE as u32).collect();
        self.lock().ports.insert(own, Port { free, ..Port::default() });
        let region = MmapOptions::new().len(PAGES * BPAGE).map_anon().unwrap();
        Fake { net: self.clone(), own, region: Arc::new(region.into()) }
    }

    /// The next call of a socket fails with this.
    pub fn refuse(&self, own: &str, errno: Errno) {
        self.port(own, |port| port.refused.push_back(errno));
    }

    /// A request fails.
    pub fn fail(&self, own: &str, id: u64, cookie: u64, errno: Errno) {
        self.port(own, |port| port.queue.push_back(Queued::Failed { id, cookie, errno }));
    }

    /// How many pages a socket's program holds, and how many it has given back in all.
    pub fn pages(&self, own: &str) -> (usize, usize) {
        self.port(own, |port| (port.held.len(), port.returned))
    }

    /// Messages that a socket has not received.
    pub fn queued(&self, own: &str) -> usize {
        self.port(own, |port| port.queue.len())
    }

    fn port<T>(&self, own: &str, with: impl FnOnce(&mut Port) -> T) -> T {
        with(self.lock().ports.get_mut(&own.parse().unwrap()).unwrap())
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if Arc::strong_count(&self.region) == 1 {
            self.net.lock().ports.remove(&self.own);
        }
    }
}

impl Fake {
    /// Puts a message into the pages of a port, as the kernel does.
    fn hand_over(&self, port: &mut Port, args: &mut ReceiveArgs, bytes: &[u8]) {
        args.pages = bytes.len().div_ceil(BPAGE) as u32;
        for (number, part) in bytes.chunks(BPAGE).enumerate() {
            let at = port.free.pop_front().expect("a page");
            args.offsets[number] = at;
            port.held.push(at);
            // A page beyond the region is what no kernel should say, and one test does.
            let fits = part.len().min(self.region.len().saturating_sub(at as usize));
            if fits > 0 {
                // SAFETY: inside the mapping; the page was free, so that no slice of it is out.
                let to = unsafe { self.region.as_mut_ptr().add(at as usize) };
                // SAFETY: as above, and what is sent lies elsewhere.
                unsafe { to.copy_from_nonoverlapping(part.as_ptr(), fits) };
            }
        }
    }
}

impl Calls for Fake {
    fn send(&self, args: &mut SendArgs, to: &SockAddr, message: &[u8]) -> Result<(), Errno> {
        let to = to.as_socket().unwrap();
        let network = &mut *self.net.lock();
        if let Some(errno) = network.ports.get_mut(&self.own).unwrap().refused.pop_front() {
            return Err(errno);
        }
        let bytes = message.to_vec();
        let queued = match args.id {
            0 => {
                network.last_id += 2;
                args.id = network.last_id;
                network.open.insert(args.id, (self.own, args.cookie));
                Queued::Message { id: args.id | 1, cookie: 0, from: self.own, bytes }
            }
            id => {
                assert!(is_request(id) && args.cookie == 0, "{args:?}");
                let (client, cookie) = network.open.remove(&(id & !1)).expect("answered twice");
                assert_eq!(client, to, "answered to another");
                network.answered.push(id);
                Queued::Message { id: id & !1, cookie, from: self.own, bytes }
            }
        };
        match network.ports.get_mut(&to) {
            Some(port) => port.queue.push_back(queued),
            None => {
                let own = network.ports.get_mut(&self.own).unwrap();
                let (id, cookie, errno) = (args.id, args.cookie, Errno::NOTCONN);
                own.queue.push_back(Queued::Failed { id, cookie, errno });
            }
        }
        Ok(())
    }

    fn receive(&self, args: &mut ReceiveArgs, sleeps: bool) -> Received {
        let network = &mut *self.net.lock();
        let port = network.ports.get_mut(&self.own).unwrap();
        if let Some(errno) = port.refused.pop_front() {
            return Err(errno);
        }
        for at in &args.offsets[..args.pages as usize] {
            let place = port.held.iter().position(|held| held == at);
            port.held.swap_remove(place.expect("a page that was never handed over"));
            port.free.push_back(*at);
            port.returned += 1;
        }
        args.pages = 0;
        assert!(!sleeps || !port.queue.is_empty(), "this would sleep for ever");
        match port.queue.pop_front() {
            None => Err(Errno::AGAIN),
            Some(Queued::Failed { id, cookie, errno }) => {
                (args.id, args.cookie) = (id, cookie);
                Err(errno)
            }
            Some(Queued::Message { id, cookie, from, bytes }) => {
                (args.id, args.cookie) = (id, cookie);
                self.hand_over(port, args, &bytes);
                Ok((bytes.len(), Some(from)))
            }
        }
    }

    fn sleep(&self, _: PollFlags, patience: Option<Duration>) {
        std::thread::sleep(Duration::from_millis(1).min(patience.unwrap_or(Duration::MAX)));
    }

    fn region(&self) -> &MmapRaw {
        &self.region
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
