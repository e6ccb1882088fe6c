//! What arrives, and the pages in which it lies: handed over by one `recvmsg`, given back by the
//! next.

use super::abi::{BPAGE, MOST_BPAGES, ReceiveArgs};
use super::socket::Calls;
use rustix::io::Errno;
use std::net::SocketAddr;

/// A socket and the message that has arrived last.
pub struct Inbox<S> {
    /// The socket.
    pub socket: S,
    /// Its pages are the program's until the next `receive`.
    args: ReceiveArgs,
    /// Where in the region the last message that was laid out is; `None`: in `gathered`.
    place: Option<usize>,
    length: usize,
    /// A message whose pages lie apart is put together here.
    gathered: Box<[u8]>,
    /// How many were.
    pub gatherings: u64,
}

/// A message that has arrived, not laid out yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Of which request.
    pub id: u64,
    /// Its length in bytes.
    pub length: usize,
    /// Who sent it.
    pub from: Option<SocketAddr>,
}

/// Why nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing has come, or a signal has.
    Nothing,
    /// A request has failed: what it was sent with, and why.
    Request {
        /// What it was sent with; 0 for one that was to be answered here.
        cookie: u64,
        /// Why.
        errno: Errno,
    },
    /// The socket.
    Socket(Errno),
}

impl<S: Calls> Inbox<S> {
    /// Over a socket, for messages of at most `largest` bytes.
    pub fn new(socket: S, largest: usize) -> Inbox<S> {
        Inbox {
            socket,
            args: ReceiveArgs::default(),
            place: None,
            length: 0,
            // Touched now, and only where a message may take more than a page.
            gathered: vec![1; if largest > BPAGE { largest } else { 0 }].into_boxed_slice(),
            gatherings: 0,
        }
    }

    /// Gives the pages of the last message back and receives the next; sleeps until there is one
    /// where `sleeps`.
    #[inline]
    pub fn receive(&mut self, sleeps: bool) -> Result<Incoming, Failure> {
        (self.place, self.length) = (None, 0);
        (self.args.id, self.args.cookie) = (0, 0);
        let got = self.socket.receive(&mut self.args, sleeps);
        // Whatever became of the call, the pages that stand in the arguments now are the
        // program's: new ones, or those that the kernel could not take back.
        self.args.pages = self.args.pages.min(MOST_BPAGES as u32);
        let ReceiveArgs { id, cookie, .. } = self.args;
        match got {
            Ok((length, from)) => Ok(Incoming { id, length, from }),
            Err(Errno::AGAIN | Errno::INTR) => Err(Failure::Nothing),
            Err(errno) if id != 0 => Err(Failure::Request { cookie, errno }),
            Err(errno) => Err(Failure::Socket(errno)),
        }
    }

    /// Makes one slice of the message that was received last: where it lies, if its pages follow
    /// each other, else a copy. Whether its pages hold it at all.
    #[inline]
    #[must_use]
    pub fn lay_out(&mut self, length: usize) -> bool {
        let pages = &self.args.offsets[..self.args.pages as usize];
        let Some((first, rest)) = pages.split_first() else { return false };
        let region = self.socket.region().len();
        let holds = |(number, at): (usize, &u32)| {
            let part = (length - number * BPAGE).min(BPAGE);
            *at as usize + part <= region
        };
        let is_right = length > 0 && length.div_ceil(BPAGE) == pages.len();
        if !is_right || !pages.iter().enumerate().all(holds) {
            return false;
        }
        let first = *first as usize;
        let follows = |(number, at): (usize, &u32)| *at as usize == first + (number + 1) * BPAGE;
        self.place = match rest.iter().enumerate().all(follows) {
            true => Some(first),
            false if length > self.gathered.len() => return false,
            false => self.gather(length),
        };
        self.length = length;
        true
    }

    /// Copies the pages one behind the other.
    fn gather(&mut self, length: usize) -> Option<usize> {
        let mut gathered = std::mem::take(&mut self.gathered);
        let pages = &self.args.offsets[..self.args.pages as usize];
        for (to, at) in gathered[..length].chunks_mut(BPAGE).zip(pages) {
            // SAFETY: the region lives as long as the socket and was zero at first; the page was
            // handed over by the last `receive`.
            to.copy_from_slice(unsafe { &*self.part(*at as usize, to.len()) });
        }
        self.gathered = gathered;
        self.gatherings += 1;
        None
    }

    /// A part of the region. Who reads or writes it holds its pages.
    #[inline]
    pub fn part(&self, at: usize, length: usize) -> *mut [u8] {
        let (region, end) = (self.socket.region(), at.checked_add(length));
        assert!(end.is_some_and(|end| end <= region.len()), "beyond the receive region");
        // SAFETY: inside the mapping, as has just been seen.
        std::ptr::slice_from_raw_parts_mut(unsafe { region.as_mut_ptr().add(at) }, length)
    }

    /// The message that was laid out last, until the next `receive`; empty before the first.
    #[inline]
    pub fn message(&self) -> &[u8] {
        match self.place {
            // SAFETY: as for `gather`, of all of its pages; the next `receive` forgets this place.
            Some(at) => unsafe { &*self.part(at, self.length) },
            None => &self.gathered[..self.length],
        }
    }

    /// As [`Self::message`], to be written.
    #[inline]
    pub fn message_mut(&mut self) -> &mut [u8] {
        match self.place {
            // SAFETY: as above, and the socket is borrowed for writing.
            Some(at) => unsafe { &mut *self.part(at, self.length) },
            None => &mut self.gathered[..self.length],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::abi::SendArgs;
    use super::super::socket::Received;
    use super::*;
    use memmap2::{MmapOptions, MmapRaw};
    use rustix::event::PollFlags;
    use socket2::SockAddr;
    use std::os::fd::BorrowedFd;
    use std::sync::Arc;
    use std::time::Duration;

    /// A socket that hands over these pages, whatever the length.
    #[derive(Clone)]
    struct Liar(Arc<MmapRaw>, Vec<u32>);

    impl Calls for Liar {
        fn send(&self, _: &mut SendArgs, _: &SockAddr, _: &[u8]) -> Result<(), Errno> {
            Ok(())
        }

        fn receive(&self, args: &mut ReceiveArgs, _: bool) -> Received {
            (args.id, args.pages) = (2, self.1.len() as u32);
            args.offsets.iter_mut().zip(&self.1).for_each(|(to, at)| *to = *at);
            Ok((1, None))
        }

        fn sleep(&self, _: PollFlags, _: Option<Duration>) {}

        fn region(&self) -> &MmapRaw {
            &self.0
        }

        fn descriptor(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    #[test]
    fn what_a_kernel_says_is_not_believed() {
        const PAGE: u32 = BPAGE as u32;
        let laid_out = |pages: &[u32], length| {
            let region = MmapRaw::from(MmapOptions::new().len(3 * BPAGE).map_anon().unwrap());
            let mut inbox = Inbox::new(Liar(Arc::new(region), pages.to_vec()), 2 * BPAGE);
            assert!(inbox.message().is_empty(), "nothing has come");
            inbox.receive(false).unwrap();
            assert!(inbox.message().is_empty(), "nothing is laid out");
            let is = inbox.lay_out(length);
            assert_eq!(inbox.message().len(), if is { length } else { 0 });
            is
        };
        assert!(laid_out(&[5], BPAGE) && laid_out(&[2 * PAGE, 0], BPAGE + 1));
        assert!(laid_out(&[0, PAGE, 2 * PAGE], 3 * BPAGE), "longer than what is gathered");
        // Pages that are too few, too many, beyond the region; more than there is memory for.
        assert!(!laid_out(&[], 0) && !laid_out(&[0], 0) && !laid_out(&[], 1));
        assert!(!laid_out(&[0], BPAGE + 1) && !laid_out(&[0, PAGE, 2 * PAGE], 8));
        assert!(!laid_out(&[2 * PAGE + 1], BPAGE) && !laid_out(&[u32::MAX], 1));
        assert!(
            !laid_out(&[0, 2 * PAGE], BPAGE * 2 + 1) && !laid_out(&[2 * PAGE, PAGE, 0], 3 * BPAGE)
        );
        // More of them than any message has.
        assert!(!laid_out(&[0; 17], 16 * BPAGE));
    }
}
