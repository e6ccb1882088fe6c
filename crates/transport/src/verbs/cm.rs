//! Connecting by the RDMA connection manager: the server's end listens at the address of its port,
//! the client's resolves it and connects, one queue pair after the other.
//!
//! The queue pairs stay this program's own: the manager says which attributes each state wants, and
//! they are set here. A request must come from an address that the daemon allows and carry the
//! run's cookie; others are rejected.

use super::adapter::{Adapter, is_ethernet, mtu_of, port_folder};
use super::address::path_mtu;
use super::options::{by_manager, service};
use super::resources::{Owned, QueuePair, done};
use super::service::Service;
use super::states::{End, queue_key};
use crate::setup::Deadline;
use crate::{Result, Role, Setup, SetupError, check_own, is_peer};
use fabric_sys::verbs::types::*;
use fabric_sys::verbs::{Cm, cm};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{SockAddr, SockAddrStorage};
use std::ffi::{CStr, c_int};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::BorrowedFd;
use wiregauge_host::Tree;

/// Requests that wait to be taken.
const BACKLOG: c_int = 64;

/// The channel of the manager's events, released after its identifiers.
type Events = Owned<rdma_event_channel, (), Cm, ()>;

/// A communication identifier. It is released when all its events were acknowledged.
type Identifier = Owned<rdma_cm_id, (), Cm>;

/// The content of an event.
struct Event {
    kind: rdma_cm_event_type,
    id: *mut rdma_cm_id,
    status: c_int,
    /// What the other end sent along with a request.
    data: Vec<u8>,
    /// The address that a request came from.
    from: Option<IpAddr>,
}

/// The manager's side of one end: what listens or has connected.
pub struct Connection {
    // Dropped in this order.
    connected: Vec<Identifier>,
    listening: Option<Identifier>,
    events: Events,
    service: Service,
    setup: Setup,
}

impl Connection {
    /// An end that has not connected yet.
    pub fn new(setup: &Setup) -> Result<Connection> {
        let cm = cm().map_err(|missing| SetupError::Refused(missing.to_string()))?;
        // SAFETY: no arguments.
        let raw = unsafe { (cm.rdma_create_event_channel)() };
        let what =
            "opening the RDMA connection manager (/dev/infiniband/rdma_cm; modprobe rdma_ucm)";
        // SAFETY: it was made just now.
        let events = unsafe { Events::take(raw, cm.rdma_destroy_event_channel, (cm, ()), what)? };
        rustix::io::ioctl_fionbio(events.descriptor(), true)
            .map_err(SetupError::system("a channel of the connection manager"))?;
        let (service, setup) = (service(&setup.settings), setup.clone());
        Ok(Connection { connected: Vec::new(), listening: None, events, service, setup })
    }

    fn identifier(&self) -> Result<Identifier> {
        let cm = self.events.library;
        let mut raw = std::ptr::null_mut();
        let space = match self.service {
            Service::Ud => RDMA_PS_UDP,
            _ => RDMA_PS_TCP,
        };
        // SAFETY: a live channel and room for the answer.
        let value = unsafe {
            (cm.rdma_create_id)(self.events.raw(), &mut raw, std::ptr::null_mut(), space)
        };
        let what = "creating an identifier of the connection manager";
        done(value, what)?;
        // SAFETY: it was made just now.
        unsafe { Identifier::take(raw, cm.rdma_destroy_id, (cm, ()), what) }
    }

    /// Listens at the port's address; where.
    pub fn listen(&mut self, adapter: &Adapter) -> Result<SocketAddr> {
        let mut address = address_of(adapter)?;
        check_own(address.ip())?;
        let listener = self.identifier()?;
        let cm = self.events.library;
        let raw = SockAddr::from(address);
        // SAFETY: a live identifier, and an address that lives through the call and is only read.
        let value = unsafe { (cm.rdma_bind_addr)(listener.raw(), pointer_to(&raw)) };
        done(value, format_args!("binding the connection manager to {address}"))?;
        // SAFETY: as above.
        let value = unsafe { (cm.rdma_listen)(listener.raw(), BACKLOG) };
        done(value, "listening for RDMA connections")?;
        // SAFETY: as above; the number is in network order.
        address.set_port(u16::from_be(unsafe { (cm.rdma_get_src_port)(listener.raw()) }));
        self.listening = Some(listener);
        Ok(address)
    }

    /// Connects each queue pair to the other end's.
    pub fn join(&mut self, pairs: &[QueuePair], end: &End<'_>) -> Result<()> {
        for (number, qp) in (0..).zip(pairs) {
            let id = match self.setup.role {
                Role::Server => self.accept(number, qp, end)?,
                Role::Client | Role::Node => self.connect(number, qp, end)?,
            };
            self.connected.push(id);
        }
        self.listening = None;
        Ok(())
    }

    /// Takes the client's connection for queue pair `number`.
    fn accept(&self, number: u16, qp: &QueuePair, end: &End<'_>) -> Result<Identifier> {
        let id = self.request(number)?;
        ready(&id, qp, end)?;
        let mut parameters = parameters(qp, end, &[]);
        // SAFETY: a live identifier and parameters that live through the call.
        let value = unsafe { (id.library.rdma_accept)(id.raw(), &mut parameters) };
        done(value, "accepting an RDMA connection")?;
        if self.service != Service::Ud {
            self.await_event(&id, RDMA_CM_EVENT_ESTABLISHED, "the connection")?;
        }
        Ok(id)
    }

    /// The request for queue pair `number` of this run; others are rejected.
    fn request(&self, number: u16) -> Result<Identifier> {
        let deadline = self.setup.deadline();
        loop {
            let event = self.next(&deadline, "a request for a connection")?;
            if event.kind != RDMA_CM_EVENT_CONNECT_REQUEST {
                continue;
            }
            let is_allowed = event.from.is_some_and(is_peer);
            if is_allowed && greets(&event.data, &self.setup.cookie, number) {
                return self.requested(&event);
            }
            self.reject(&event)?;
        }
    }

    /// The identifier of a request, which is ours to release.
    fn requested(&self, request: &Event) -> Result<Identifier> {
        let cm = self.events.library;
        // SAFETY: it came with the request, which was taken just now.
        unsafe { Identifier::take(request.id, cm.rdma_destroy_id, (cm, ()), "taking a request") }
    }

    /// Rejects a request.
    fn reject(&self, request: &Event) -> Result<()> {
        let id = self.requested(request)?;
        // SAFETY: a live identifier that waits for an answer.
        unsafe { (id.library.rdma_reject)(id.raw(), std::ptr::null(), 0) };
        Ok(())
    }

    /// Connects queue pair `number` to the server's.
    fn connect(&self, number: u16, qp: &QueuePair, end: &End<'_>) -> Result<Identifier> {
        let Some(server) = end.other.cm else { return Err(SetupError::Address) };
        let source = address_of(end.adapter)?;
        let (id, cm) = (self.identifier()?, self.events.library);
        let milliseconds = self.setup.timeout.duration().as_millis().min(60_000) as c_int;
        let (from, to) = (SockAddr::from(source), SockAddr::from(server));
        let (from, to) = (pointer_to(&from), pointer_to(&to));
        // SAFETY: a live identifier; the addresses live through the call and are only read.
        let value = unsafe { (cm.rdma_resolve_addr)(id.raw(), from, to, milliseconds) };
        done(value, format_args!("resolving {server} from {source}"))?;
        self.await_event(&id, RDMA_CM_EVENT_ADDR_RESOLVED, "the address")?;
        // SAFETY: as above.
        let value = unsafe { (cm.rdma_resolve_route)(id.raw(), milliseconds) };
        done(value, format_args!("finding the route to {server}"))?;
        self.await_event(&id, RDMA_CM_EVENT_ROUTE_RESOLVED, "the route")?;
        let greeting = [self.setup.cookie.as_slice(), &number.to_le_bytes()].concat();
        let mut parameters = parameters(qp, end, &greeting);
        // SAFETY: as above; the greeting lives through the call.
        let value = unsafe { (cm.rdma_connect)(id.raw(), &mut parameters) };
        done(value, format_args!("connecting to {server}"))?;
        let is_datagram = self.service == Service::Ud;
        let answer = match is_datagram {
            true => RDMA_CM_EVENT_ESTABLISHED,
            false => RDMA_CM_EVENT_CONNECT_RESPONSE,
        };
        self.await_event(&id, answer, "the answer")?;
        ready(&id, qp, end)?;
        if !is_datagram {
            // SAFETY: as above.
            let value = unsafe { (cm.rdma_establish)(id.raw()) };
            done(value, "completing an RDMA connection")?;
        }
        Ok(id)
    }

    /// The next event, in time.
    fn next(&self, deadline: &Deadline, what: &str) -> Result<Event> {
        loop {
            let mut raw = std::ptr::null_mut();
            let (cm, channel) = (self.events.library, self.events.raw());
            // SAFETY: a live channel and room for the answer.
            if unsafe { (cm.rdma_get_cm_event)(channel, &mut raw) } == 0 {
                // SAFETY: the event that came just now.
                return Ok(unsafe { self.take(raw) });
            }
            let left = deadline.left(&format!("{what} by the connection manager"))?;
            let descriptor = self.events.descriptor();
            let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
            let _ = poll(&mut watched, Timespec::try_from(left).ok().as_ref());
        }
    }

    /// Copies what an event says, and acknowledges it.
    ///
    /// # Safety
    /// It came from the library and was not acknowledged yet.
    unsafe fn take(&self, raw: *mut rdma_cm_event) -> Event {
        // SAFETY: the caller's promise: it is live until it is acknowledged, once. The service says
        // which member was written, and the data is as long as it says.
        unsafe {
            let event = &*raw;
            let (ud, connected) = (&event.param.ud, &event.param.conn);
            let (data, length) = match self.service {
                Service::Ud => (ud.private_data, ud.private_data_len),
                _ => (connected.private_data, connected.private_data_len),
            };
            let is_request = event.event == RDMA_CM_EVENT_CONNECT_REQUEST && !event.id.is_null();
            let has_data = is_request && !data.is_null();
            let from = is_request.then(|| peer_of(&*event.id)).flatten();
            let data = match has_data {
                true => std::slice::from_raw_parts(data.cast(), usize::from(length)).to_vec(),
                false => Vec::new(),
            };
            let taken = Event { kind: event.event, id: event.id, status: event.status, data, from };
            (self.events.library.rdma_ack_cm_event)(raw);
            taken
        }
    }

    /// Waits for this event of this identifier; another one of its is a failure.
    fn await_event(&self, id: &Identifier, kind: rdma_cm_event_type, what: &str) -> Result<()> {
        let deadline = self.setup.deadline();
        loop {
            let event = self.next(&deadline, what)?;
            if event.kind == RDMA_CM_EVENT_CONNECT_REQUEST {
                self.reject(&event)?;
            } else if event.id == id.raw() && event.kind == kind {
                return Ok(());
            } else if event.id == id.raw() {
                // SAFETY: the function gives a static string for every number.
                let name =
                    unsafe { CStr::from_ptr((self.events.library.rdma_event_str)(event.kind)) };
                return Err(SetupError::Refused(format!(
                    "the RDMA connection manager reported {} (status {}) instead of {what}",
                    name.to_string_lossy(),
                    event.status
                )));
            }
        }
    }
}

impl Events {
    fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: a live channel has an open descriptor, which is closed with it.
        unsafe { BorrowedFd::borrow_raw((*self.raw()).fd) }
    }
}

/// The address of the other end of a request's identifier, as `rdma_get_peer_addr` gives it.
///
/// # Safety
/// The manager has made the identifier for a request, and filled its route.
unsafe fn peer_of(id: &rdma_cm_id) -> Option<IpAddr> {
    let mut storage = SockAddrStorage::zeroed();
    // SAFETY: the destination is the storage of an address, of which every byte was written, and
    // both types are laid out as the system's `sockaddr_storage`.
    let address = unsafe {
        *storage.view_as::<sockaddr_storage>() = id.route.addr.__bindgen_anon_2.dst_storage;
        SockAddr::new(storage, size_of::<sockaddr_storage>() as _)
    };
    address.as_socket().map(|address| address.ip().to_canonical())
}

/// Whether a request is of this run and for this queue pair: the cookie and the number of the
/// queue pair (2 bytes, the lower first). What follows is padding.
fn greets(data: &[u8], cookie: &[u8; 32], number: u16) -> bool {
    data.starts_with(&[&cookie[..], &number.to_le_bytes()].concat())
}

fn parameters(qp: &QueuePair, end: &End<'_>, greeting: &[u8]) -> rdma_conn_param {
    let asked = &end.adapter.asked;
    rdma_conn_param {
        private_data: greeting.as_ptr().cast(),
        private_data_len: greeting.len() as u8,
        responder_resources: end.own.answers,
        initiator_depth: asked.reads(&end.adapter.device, end.other.answers),
        retry_count: asked.retries,
        rnr_retry_count: asked.rnr_retries,
        qp_num: qp.number(),
        ..rdma_conn_param::default()
    }
}

/// INIT to RTR to RTS by what the manager has agreed on.
fn ready(id: &Identifier, qp: &QueuePair, end: &End<'_>) -> Result<()> {
    for state in [IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS] {
        let mut attributes = ibv_qp_attr { qp_state: state, ..ibv_qp_attr::default() };
        let mut mask = 0;
        // SAFETY: a live identifier and room for the answers.
        let value = unsafe { (id.library.rdma_init_qp_attr)(id.raw(), &mut attributes, &mut mask) };
        done(value, "asking the connection manager for the next state")?;
        if end.own.service == Service::Ud && state != IBV_QPS_INIT {
            // Of a datagram's queue pair the manager only knows the first state.
            mask = (if state == IBV_QPS_RTS { IBV_QP_STATE | IBV_QP_SQ_PSN } else { IBV_QP_STATE })
                as c_int;
        } else if state == IBV_QPS_RTR {
            let agreed = mtu_of(path_mtu(end.own, end.other));
            attributes.path_mtu = attributes.path_mtu.min(agreed);
            attributes.min_rnr_timer = end.adapter.asked.rnr_timer;
            mark(&mut attributes.ah_attr, end.adapter);
        } else if state == IBV_QPS_RTS {
            let asked = &end.adapter.asked;
            let most = asked.reads(&end.adapter.device, end.other.answers);
            attributes.max_rd_atomic = attributes.max_rd_atomic.min(most);
            if end.adapter.settings.is_given("qp-timeout") {
                attributes.timeout = asked.timeout;
            }
        }
        qp.modify(&mut attributes, mask as u32, "setting the state that the manager asks for")?;
    }
    Ok(())
}

/// Sets what was asked for of the way that the manager has found, and leaves the rest.
fn mark(way: &mut ibv_ah_attr, adapter: &Adapter) {
    let (found, settings) = (*way, &adapter.settings);
    adapter.asked.mark(way);
    if !settings.is_given("service-level") {
        way.sl = found.sl;
    }
    if !settings.is_given("traffic-class") {
        way.grh.traffic_class = found.grh.traffic_class;
    }
    if !settings.is_given("flow-label") {
        way.grh.flow_label = found.grh.flow_label;
    }
}

/// The key of datagrams among ends that the manager has connected (`RDMA_UDP_QKEY` of
/// <rdma/rdma_cma.h>).
const DATAGRAM_KEY: u32 = 0x0123_4567;

/// The key that datagrams to this end carry.
pub fn datagram_key(setup: &Setup) -> u32 {
    match by_manager(&setup.settings) {
        true => DATAGRAM_KEY,
        false => queue_key(&setup.cookie),
    }
}

/// The IP address by which the manager knows a port: its GID's on Ethernet, that of its IPoIB
/// interface on InfiniBand.
fn address_of(adapter: &Adapter) -> Result<SocketAddr> {
    if is_ethernet(&adapter.attributes) {
        let address = Ipv6Addr::from(adapter.gid);
        return Ok(match address.to_ipv4_mapped() {
            Some(address) => SocketAddr::from((address, 0)),
            None => SocketAddr::V6(SocketAddrV6::new(address, 0, 0, scope_of(adapter, address))),
        });
    }
    // On InfiniBand the manager knows a port by its IPoIB interface.
    let folder = format!("/sys/class/infiniband/{}/device/net", adapter.name);
    let names = Tree::default().names(&folder);
    names.iter().find_map(|name| wiregauge_host::address_of(name, None).ok()).ok_or_else(|| {
        SetupError::Refused(format!(
            "--connect cm needs an IP address on an interface of {} (there is: {}); give it one, \
             or use --connect exchange",
            adapter.name,
            if names.is_empty() { "none".to_string() } else { names.join(", ") }
        ))
    })
}

/// The interface that a link-local address belongs to; 0 for any other.
fn scope_of(adapter: &Adapter, address: Ipv6Addr) -> u32 {
    let port = port_folder(&adapter.name, adapter.port);
    let device = format!("{port}/gid_attrs/ndevs/{}", adapter.gid_index);
    let name = Tree::default().text(&device).filter(|_| address.is_unicast_link_local());
    let number = |name| Tree::default().number(&format!("/sys/class/net/{name}/ifindex"));
    name.and_then(number).unwrap_or(0)
}

/// A socket address as the library takes it: it reads it, whatever its header says.
fn pointer_to(address: &SockAddr) -> *mut sockaddr {
    address.as_ptr().cast_mut().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_taken_with_the_run_s_cookie_and_its_turn_alone() {
        let cookie = [7; 32];
        let mut data = vec![0; 56];
        data[..32].copy_from_slice(&cookie);
        data[32..34].copy_from_slice(&[3, 1]);
        assert!(greets(&data, &cookie, 259));
        assert!(!greets(&data, &cookie, 3) && !greets(&data, &[8; 32], 259));
        assert!(!greets(&data[..33], &cookie, 259) && !greets(&[], &cookie, 0));
    }

    #[test]
    fn a_request_says_where_it_came_from() {
        for text in ["10.9.0.1:258", "[2001:db8::1]:258", "[::ffff:10.9.0.1]:258"] {
            let at: SocketAddr = text.parse().unwrap();
            let (mut id, raw) = (rdma_cm_id::default(), SockAddr::from(at));
            // SAFETY: the address is as long as it says, and no longer than the storage; the
            // identifier holds an address, as after a request.
            let found = unsafe {
                let to = (&raw mut id.route.addr.__bindgen_anon_2.dst_storage).cast::<u8>();
                to.copy_from(raw.as_ptr().cast(), raw.len() as usize);
                peer_of(&id)
            };
            assert_eq!(found, Some(at.ip().to_canonical()));
        }
        // SAFETY: an address of no family.
        assert_eq!(unsafe { peer_of(&rdma_cm_id::default()) }, None);
    }

    #[test]
    fn an_address_is_laid_out_as_the_system_has_it() {
        let raw = SockAddr::from("10.9.0.1:258".parse::<SocketAddr>().unwrap());
        // SAFETY: an address of more bytes than that was written.
        let bytes = unsafe { std::slice::from_raw_parts(pointer_to(&raw).cast::<u8>(), 8) };
        assert_eq!(bytes, [2, 0, 1, 2, 10, 9, 0, 1]);
    }
}
