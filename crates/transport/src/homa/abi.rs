//! Homa's socket interface: its numbers, and the structures that `sendmsg(2)`, `recvmsg(2)` and
//! `setsockopt(2)` are given.
//!
//! Source: `include/uapi/linux/homa.h` of the patches that its author sent to the network list
//! (versions 12 of July 2025 and 14; those before 11 have other structures), and the man pages
//! `homa(7)`, `sendmsg(2)` and `recvmsg(2)` of the module.

/// The protocol's number in IP's header and in `socket(2)`.
pub const PROTOCOL: u32 = 146;
/// Longest message in bytes, of a request and of a reply.
pub const LARGEST: usize = 1_000_000;
/// Bytes of a page of the receive region. All pages of a message but the last are full.
pub const BPAGE: usize = 1 << 16;
/// Most pages of a message.
pub const MOST_BPAGES: usize = LARGEST.div_ceil(BPAGE);
/// The last port that can be asked for by `bind(2)`; those above are the kernel's to give.
pub const LAST_ASKED_PORT: u16 = 0x7fff;
/// `setsockopt` at the level of the protocol: where the kernel may put what arrives ([`Region`]).
pub const SO_RCVBUF: libc::c_int = 10;
/// `setsockopt` at the level of the protocol: whether requests are let in (an `int`).
pub const SO_SERVER: libc::c_int = 11;

/// What `sendmsg` reads at `msg_control`, with a `msg_controllen` of 0 (`homa_sendmsg_args`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendArgs {
    /// 0 for a new request, and overwritten by its id; else the id of the request that is answered.
    pub id: u64,
    /// Comes back with the reply to a request; 0 for a reply.
    pub cookie: u64,
    flags: u32,
    reserved: u32,
}

impl SendArgs {
    /// A new request.
    pub fn request(cookie: u64) -> SendArgs {
        SendArgs { cookie, ..Default::default() }
    }

    /// The reply to the request of this id.
    pub fn reply(id: u64) -> SendArgs {
        SendArgs { id, ..Default::default() }
    }
}

/// What `recvmsg` reads and writes at `msg_control` (`homa_recvmsg_args`).
///
/// On the way in: the pages that are given back. On the way out, whether the call failed or not:
/// those that belong to the program.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveArgs {
    /// In: 0 for any message. Out: of which request, or 0 where a failure is of none.
    pub id: u64,
    /// Out: what the request was sent with, for a reply; else 0.
    pub cookie: u64,
    /// How many of the offsets count.
    pub pages: u32,
    reserved: u32,
    /// Where the pages begin, from the beginning of the region on.
    pub offsets: [u32; MOST_BPAGES],
}

/// The memory for what arrives (`homa_rcvbuf_args`): it begins on a page of the machine's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Region {
    /// Its address.
    pub start: u64,
    /// Its length in bytes.
    pub length: usize,
}

/// `HOMAIOCINFO`: what a socket says of itself, `_IOWR('h', 0x90, struct homa_info)`.
pub const IOCTL_INFO: u64 = (3 << 30) | ((size_of::<Info>() as u64) << 16) | (0x68 << 8) | 0x90;

/// What a socket says of itself (`homa_info`), without its requests.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// In: memory for its requests, and how long that is; none here.
    requests: u64,
    requests_length: u64,
    free_bytes: u64,
    port: u32,
    open_requests: u32,
    /// Out: why the last call failed, in words that a zero ends; empty where it says nothing.
    pub error: [u8; 104],
}

impl Info {
    /// What the ioctl is given.
    pub const EMPTY: Info = Info {
        requests: 0,
        requests_length: 0,
        free_bytes: 0,
        port: 0,
        open_requests: 0,
        error: [0; 104],
    };

    /// Why the last call failed, in the module's own words.
    pub fn words(&self) -> Option<String> {
        let words = self.error.split(|byte| *byte == 0).next().unwrap_or_default();
        let words = String::from_utf8_lossy(words);
        (!words.is_empty()).then(|| words.into_owned())
    }
}

/// Whether an id is that of a request, as its server sees it; a client's are even.
#[inline(always)]
pub const fn is_request(id: u64) -> bool {
    id & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_structures_are_laid_out_as_published() {
        assert_eq!((size_of::<SendArgs>(), align_of::<SendArgs>()), (24, 8));
        assert_eq!(offset_of!(SendArgs, id), 0);
        assert_eq!(offset_of!(SendArgs, cookie), 8);
        assert_eq!(offset_of!(SendArgs, flags), 16);
        assert_eq!(offset_of!(SendArgs, reserved), 20);
        assert_eq!((size_of::<ReceiveArgs>(), align_of::<ReceiveArgs>()), (88, 8));
        assert_eq!(offset_of!(ReceiveArgs, id), 0);
        assert_eq!(offset_of!(ReceiveArgs, cookie), 8);
        assert_eq!(offset_of!(ReceiveArgs, pages), 16);
        assert_eq!(offset_of!(ReceiveArgs, reserved), 20);
        assert_eq!(offset_of!(ReceiveArgs, offsets), 24);
        // `size_t` is as wide as an address.
        assert_eq!(size_of::<Region>(), 8 + size_of::<usize>());
        assert_eq!(offset_of!(Region, start), 0);
        assert_eq!(offset_of!(Region, length), 8);
        assert_eq!((size_of::<Info>(), offset_of!(Info, error)), (136, 32));
        assert_eq!(IOCTL_INFO, 0xc088_6890);
    }

    #[test]
    fn the_module_s_words_end_at_a_zero() {
        let mut info = Info::EMPTY;
        assert_eq!(info.words(), None);
        info.error[..5].copy_from_slice(b"why\0x");
        assert_eq!(info.words().as_deref(), Some("why"));
        info.error = [b'x'; 104];
        assert_eq!(info.words().unwrap().len(), 104);
    }

    #[test]
    fn the_largest_message_takes_sixteen_pages() {
        assert_eq!((BPAGE, MOST_BPAGES), (65_536, 16));
        const { assert!(15 * BPAGE < LARGEST && LARGEST <= 16 * BPAGE) };
    }

    #[test]
    fn a_server_s_ids_are_odd() {
        assert!(is_request(7) && !is_request(6));
        assert_eq!(SendArgs::request(5), SendArgs { id: 0, cookie: 5, flags: 0, reserved: 0 });
        assert_eq!(SendArgs::reply(7), SendArgs { id: 7, cookie: 0, flags: 0, reserved: 0 });
    }
}
