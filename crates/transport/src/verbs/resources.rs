//! What libibverbs makes, each thing released when its owner goes and after what was made of it.

use crate::{Result, SetupError};
use fabric_sys::verbs::types::*;
use fabric_sys::verbs::{Verbs, extended};
use rustix::event::epoll::{self, EventData};
use std::ffi::c_int;
use std::fmt::Display;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// The error of the call that has just failed.
pub fn errno() -> io::Error {
    io::Error::last_os_error()
}

/// Whether a call was done that returns 0, an error, or less than 0 with the error in errno.
pub fn done(value: c_int, what: impl Display) -> Result<()> {
    let error = match value {
        0 => return Ok(()),
        ..0 => errno(),
        1.. => io::Error::from_raw_os_error(value),
    };
    Err(SetupError::system(what.to_string())(error))
}

// SAFETY: the type of a function that its owner calls once, as `Owned::take` was promised.
type Release<T, R = c_int> = unsafe extern "C" fn(*mut T) -> R;

/// What a function of a library has made: released with its owner, before what it was made of.
pub struct Owned<T, P = (), L: 'static = Verbs, R = c_int> {
    raw: *mut T,
    release: Release<T, R>,
    /// The library.
    pub library: &'static L,
    /// What it was made of.
    pub parent: P,
}

// SAFETY: the objects of libibverbs and librdmacm may be used from any thread; what calls must not
// run at once is left to the one endpoint that owns them.
unsafe impl<T, P: Send, L: Sync, R> Send for Owned<T, P, L, R> {}
// SAFETY: as above; a shared reference only reads the pointer.
unsafe impl<T, P: Sync, L: Sync, R> Sync for Owned<T, P, L, R> {}

impl<T, P, L, R> Owned<T, P, L, R> {
    /// Takes over what a call has just made of its parent; null is a failure.
    ///
    /// # Safety
    /// `release` releases what the call has made, which nobody else does.
    pub unsafe fn take(
        raw: *mut T,
        release: Release<T, R>,
        (library, parent): (&'static L, P),
        what: impl Display,
    ) -> Result<Owned<T, P, L, R>> {
        let error = errno();
        if raw.is_null() {
            return Err(SetupError::system(what.to_string())(error));
        }
        Ok(Owned { raw, release, library, parent })
    }

    /// The library's pointer, live as long as this is.
    #[inline(always)]
    pub fn raw(&self) -> *mut T {
        self.raw
    }
}

impl<T, P, L, R> Drop for Owned<T, P, L, R> {
    fn drop(&mut self) {
        // SAFETY: it was made by the library whose function this is, and is released once. What was
        // made of it keeps it alive by an Arc, or (completion queues, shared receives, channels of
        // events) is dropped before it by its owner: the order of fields in `Queues`, `Connection`.
        unsafe { (self.release)(self.raw) };
    }
}

/// An opened device.
pub type Context = Owned<ibv_context>;
/// A protection domain.
pub type Domain = Owned<ibv_pd, Arc<Context>>;
/// A channel for events of completion.
pub type Channel = Owned<ibv_comp_channel, Arc<Context>>;
/// A queue pair.
pub type QueuePair = Owned<ibv_qp, Arc<Domain>>;
/// The address of a datagram's receiver.
pub type AddressHandle = Owned<ibv_ah, Arc<Domain>>;
/// Registered memory. Its bytes belong to a [`super::memory::Memory`].
pub type Registration = Owned<ibv_mr, Arc<Domain>>;
/// Receives that several queue pairs share.
pub type SharedReceives = Owned<ibv_srq, Arc<Domain>>;

impl<T, P> Owned<T, P> {
    /// Takes over what a call has just made of this; null is a failure.
    ///
    /// # Safety
    /// As for [`Self::take`].
    pub(super) unsafe fn own<C>(
        self: &Arc<Self>,
        raw: *mut C,
        release: Release<C>,
        what: impl Display,
    ) -> Result<Owned<C, Arc<Self>>> {
        // SAFETY: passed on to the caller.
        unsafe { Owned::take(raw, release, (self.library, Arc::clone(self)), what) }
    }
}

impl Context {
    /// Opens a device of a list that lives.
    pub fn open(verbs: &'static Verbs, device: *mut ibv_device, name: &str) -> Result<Context> {
        // SAFETY: the device is of a list that lives.
        let raw = unsafe { (verbs.ibv_open_device)(device) };
        let hint = match errno().kind() {
            io::ErrorKind::PermissionDenied => " (may this user read /dev/infiniband/*?)",
            _ => "",
        };
        let what = format_args!("opening {name}{hint}");
        // SAFETY: all that is made of the device keeps it.
        let context = unsafe { Context::take(raw, verbs.ibv_close_device, (verbs, ()), what)? };
        rustix::io::ioctl_fionbio(context.events(), true)
            .map_err(SetupError::system(format!("events of {name} that do not block")))?;
        Ok(context)
    }

    /// Readable when the device has an async event.
    pub fn events(&self) -> BorrowedFd<'_> {
        // SAFETY: a live context has an open descriptor, which is closed with it.
        unsafe { BorrowedFd::borrow_raw((*self.raw).async_fd as RawFd) }
    }

    /// The next async event of the device; an error where it can no longer be asked.
    pub fn event(&self) -> Option<io::Result<ibv_event_type>> {
        let mut event = ibv_async_event::default();
        // SAFETY: a live context and room for the answer.
        if unsafe { (self.library.ibv_get_async_event)(self.raw, &mut event) } == 0 {
            let kind = event.event_type;
            // SAFETY: the event that came just now; of what it names nothing was released yet.
            unsafe { (self.library.ibv_ack_async_event)(&mut event) };
            return Some(Ok(kind));
        }
        let error = errno();
        (error.kind() != io::ErrorKind::WouldBlock).then_some(Err(error))
    }

    /// What the device can.
    pub fn device_attributes(&self) -> Result<ibv_device_attr> {
        let mut attributes = ibv_device_attr::default();
        // SAFETY: a live context and room for the answer.
        let error = unsafe { (self.library.ibv_query_device)(self.raw, &mut attributes) };
        done(error, "querying the device")?;
        Ok(attributes)
    }

    /// What the device can beyond the plain attributes; `None`: its provider does not say.
    pub fn further_attributes(&self) -> Option<ibv_device_attr_ex> {
        let mut attributes = ibv_device_attr_ex::default();
        let (none, size) = (std::ptr::null(), size_of_val(&attributes));
        // SAFETY: a live context and room for the answer.
        let error = unsafe { extended::query_device_ex(self.raw, none, &mut attributes, size) };
        (error == 0).then_some(attributes)
    }

    /// What a port is like.
    pub fn port_attributes(&self, port: u8) -> Result<ibv_port_attr> {
        let mut attributes = ibv_port_attr::default();
        // SAFETY: as above; the function fills at most the structure that it has always had.
        let error = unsafe { (self.library.ibv_query_port)(self.raw, port, &mut attributes) };
        done(error, format_args!("querying port {port}"))?;
        Ok(attributes)
    }

    /// An entry of a port's table of GIDs.
    pub fn gid(&self, port: u8, index: u8) -> Option<[u8; 16]> {
        let mut gid = ibv_gid { raw: [0; 16] };
        let index = c_int::from(index);
        // SAFETY: a live context and room for the answer.
        let failed = unsafe { (self.library.ibv_query_gid)(self.raw, port, index, &mut gid) };
        // SAFETY: the union's other view is two integers: every byte of it is a byte.
        (failed == 0).then_some(unsafe { gid.raw })
    }
}

impl Domain {
    /// A new one.
    pub fn new(context: &Arc<Context>) -> Result<Arc<Domain>> {
        let verbs = context.library;
        let what = "creating a protection domain";
        // SAFETY: a live context.
        let raw = unsafe { (verbs.ibv_alloc_pd)(context.raw) };
        // SAFETY: it was made just now.
        unsafe { context.own(raw, verbs.ibv_dealloc_pd, what).map(Arc::new) }
    }

    /// Registers memory.
    ///
    /// # Safety
    /// The memory outlives the registration.
    pub unsafe fn register(
        self: &Arc<Self>,
        at: *mut u8,
        length: usize,
        access: c_int,
    ) -> Result<Registration> {
        // SAFETY: a live domain; the memory is the caller's promise.
        let raw = unsafe { (self.library.ibv_reg_mr)(self.raw, at.cast(), length, access) };
        let error = errno();
        match error.raw_os_error().filter(|_| raw.is_null()) {
            Some(libc::ENOMEM | libc::EAGAIN | libc::EPERM) => Err(SetupError::Refused(format!(
                "{length} B of memory cannot be registered ({error}): the limit on locked memory \
                 is too low; lift it with `ulimit -l unlimited` (or LimitMEMLOCK, \
                 /etc/security/limits.conf)"
            ))),
            // SAFETY: it was made just now.
            _ => unsafe {
                let what = format_args!("registering {length} B of memory");
                self.own(raw, self.library.ibv_dereg_mr, what)
            },
        }
    }

    /// The address of another end's datagrams.
    pub fn address(self: &Arc<Self>, mut attributes: ibv_ah_attr) -> Result<AddressHandle> {
        // SAFETY: a live domain and attributes that live through the call.
        let raw = unsafe { (self.library.ibv_create_ah)(self.raw, &mut attributes) };
        let what = "creating an address handle";
        // SAFETY: it was made just now.
        unsafe { self.own(raw, self.library.ibv_destroy_ah, what) }
    }
}

impl SharedReceives {
    /// A queue of `receives` receives.
    pub fn new(domain: &Arc<Domain>, receives: u32) -> Result<SharedReceives> {
        let mut attributes = ibv_srq_init_attr {
            attr: ibv_srq_attr { max_wr: receives, max_sge: 1, srq_limit: 0 },
            ..ibv_srq_init_attr::default()
        };
        // SAFETY: a live domain and attributes that live through the call.
        let raw = unsafe { (domain.library.ibv_create_srq)(domain.raw, &mut attributes) };
        let what = format_args!("creating a shared receive queue of {receives} receives");
        // SAFETY: it was made just now.
        unsafe { domain.own(raw, domain.library.ibv_destroy_srq, what) }
    }
}

impl Registration {
    /// What local work requests name it by, and what the other end does.
    pub fn keys(&self) -> (u32, u32) {
        // SAFETY: a live registration.
        unsafe { ((*self.raw).lkey, (*self.raw).rkey) }
    }
}

impl Channel {
    /// A new one, whose file descriptor does not block.
    pub fn new(context: &Arc<Context>) -> Result<Arc<Channel>> {
        // SAFETY: a live context.
        let raw = unsafe { (context.library.ibv_create_comp_channel)(context.raw) };
        let release = context.library.ibv_destroy_comp_channel;
        let what = "creating a completion channel";
        // SAFETY: it was made just now.
        let channel = unsafe { context.own(raw, release, what)? };
        rustix::io::ioctl_fionbio(channel.descriptor(), true)
            .map_err(SetupError::system("a completion channel that does not block"))?;
        Ok(Arc::new(channel))
    }

    /// What can be waited for.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        // SAFETY: a live channel has an open descriptor, which is closed with it.
        unsafe { BorrowedFd::borrow_raw((*self.raw).fd as RawFd) }
    }

    /// What is readable while this or the device has an event.
    pub fn alarm(&self) -> Result<OwnedFd> {
        let watch = || -> io::Result<OwnedFd> {
            let both = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            for descriptor in [self.descriptor(), self.parent.events()] {
                epoll::add(&both, descriptor, EventData::new_u64(0), epoll::EventFlags::IN)?;
            }
            Ok(both)
        };
        watch().map_err(SetupError::system("watching a completion channel"))
    }

    /// Takes all events that are there. Unless each is acknowledged, its queue is never released.
    pub fn drain(&self) {
        let (mut queue, mut owner) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: a live channel and room for the answers; the event's queue is live, since its
        // owner holds this channel.
        while unsafe { (self.library.ibv_get_cq_event)(self.raw, &mut queue, &mut owner) } == 0 {
            // SAFETY: as above.
            unsafe { (self.library.ibv_ack_cq_events)(queue, 1) };
        }
    }
}

/// A completion queue, made of the channel of its events.
pub struct CompletionQueue {
    queue: Owned<ibv_cq, Arc<Channel>>,
    /// How many completions one `start_poll` may hand over.
    most_at_once: usize,
}

impl CompletionQueue {
    /// A new one. An extended one, whose completions the device may stamp, may be polled both ways.
    pub fn new(
        channel: &Arc<Channel>,
        entries: u32,
        extended: Option<bool>,
        most_at_once: usize,
    ) -> Result<CompletionQueue> {
        let (verbs, context) = (channel.library, channel.parent.raw);
        let raw = if let Some(stamps) = extended {
            let stamp = if stamps { IBV_WC_EX_WITH_COMPLETION_TIMESTAMP } else { 0 };
            let flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | stamp;
            let mut attributes = ibv_cq_init_attr_ex {
                cqe: entries,
                channel: channel.raw,
                wc_flags: u64::from(flags),
                ..ibv_cq_init_attr_ex::default()
            };
            // SAFETY: a live context and channel. An extended queue begins as a plain one does.
            unsafe { extended::create_cq_ex(context, &mut attributes).cast() }
        } else {
            let none = std::ptr::null_mut();
            // SAFETY: a live context and channel.
            unsafe { (verbs.ibv_create_cq)(context, entries as c_int, none, channel.raw, 0) }
        };
        let what = format_args!("creating a completion queue of {entries} entries");
        // SAFETY: it was made just now.
        let queue = unsafe { channel.own(raw, verbs.ibv_destroy_cq, what)? };
        Ok(CompletionQueue { queue, most_at_once })
    }

    /// Has it raise an event for so many completions, or after so many microseconds.
    pub fn moderate(&self, cq_count: u16, cq_period: u16) -> Result<()> {
        let mut attributes = ibv_modify_cq_attr {
            attr_mask: IBV_CQ_ATTR_MODERATE,
            moderate: ibv_moderate_cq { cq_count, cq_period },
        };
        // SAFETY: a live queue and attributes that live through the call.
        let error = unsafe { extended::modify_cq(self.raw(), &mut attributes) };
        done(error, "--cq-count and --cq-period").map_err(|error| {
            SetupError::NotAllowed(format!("{error}: this device does not moderate its events"))
        })
    }

    /// Where its events come.
    pub fn channel(&self) -> &Channel {
        &self.queue.parent
    }

    /// The library's pointer, live as long as this is.
    #[inline(always)]
    pub fn raw(&self) -> *mut ibv_cq {
        self.queue.raw
    }

    /// Takes completions by `ibv_start_poll` to `ibv_end_poll`, as `ibv_poll_cq` does; the queue
    /// must have been made as an extended one.
    #[inline(always)]
    pub fn poll_extended(&self, into: &mut [ibv_wc], stamps: &mut [u64]) -> c_int {
        let (mut found, most) = (0, self.most_at_once);
        for (some, stamps) in into.chunks_mut(most).zip(stamps.chunks_mut(most)) {
            // SAFETY: the queue is live and was made as an extended one.
            match unsafe { poll_some(self.queue.raw.cast(), some, stamps) } {
                Some(Ok(taken)) => {
                    found += taken;
                    if taken < some.len() {
                        break;
                    }
                }
                Some(Err(libc::ENOENT)) => break,
                Some(Err(error)) => return -error.abs(),
                None => return -libc::EOPNOTSUPP,
            }
        }
        found as c_int
    }
}

/// One `start_poll` to `end_poll`; how many were taken.
///
/// # Safety
/// `queue` is a live extended completion queue, polled by nobody else.
#[inline(always)]
unsafe fn poll_some(
    queue: *mut ibv_cq_ex,
    into: &mut [ibv_wc],
    stamps: &mut [u64],
) -> Option<Result<usize, c_int>> {
    let mut attributes = ibv_poll_cq_attr::default();
    // SAFETY: the caller's promise; fields are read between a start that succeeded and the end.
    unsafe {
        match ((*queue).start_poll?)(queue, &mut attributes) {
            0 => {}
            error => return Some(Err(error)),
        }
        let mut taken = 0;
        loop {
            let completion = &mut into[taken];
            completion.wr_id = (*queue).wr_id;
            completion.status = (*queue).status;
            completion.byte_len = (*queue).read_byte_len.map_or(0, |read| read(queue));
            if let Some(read) = (*queue).read_imm_data {
                completion.__bindgen_anon_1.imm_data = read(queue);
            }
            if let Some(read) = (*queue).read_completion_ts {
                stamps[taken] = read(queue);
            }
            taken += 1;
            if taken == into.len() || ((*queue).next_poll?)(queue) != 0 {
                break;
            }
        }
        ((*queue).end_poll?)(queue);
        Some(Ok(taken))
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        self.channel().drain();
    }
}
