//! Dumps of the kernel's tables by netlink.

use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};
use std::os::fd::AsRawFd;

// include/uapi/linux/netlink.h
const REQUEST_DUMP: u16 = 0x301;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// Bytes of the head of a message.
const HEAD: usize = 16;
/// The most bytes of a part of an answer, and the most parts that are read: thousands of veth.
const PART: usize = 64 << 10;
const PARTS: usize = 1024;

/// Asks for all entries of a table by a message of this type and body; calls `each` with the type
/// and the body of each message of the answer.
///
/// # Errors
/// The kernel has no such protocol, or does not answer.
pub(super) fn dump(
    protocol: SockProtocol,
    kind: u16,
    body: &[u8],
    mut each: impl FnMut(u16, &[u8]),
) -> nix::Result<()> {
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    let mut request = ((HEAD + body.len()) as u32).to_ne_bytes().to_vec();
    request.extend(kind.to_ne_bytes());
    request.extend(REQUEST_DUMP.to_ne_bytes());
    request.resize(HEAD, 0);
    request.extend(body);
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &request, &kernel, MsgFlags::empty())?;
    let mut part = vec![0u8; PART];
    for _ in 0..PARTS {
        // A dump has its next part ready, so nothing waits for one that never comes.
        let length = recv(socket.as_raw_fd(), &mut part, MsgFlags::MSG_DONTWAIT)?;
        if length == 0 || read_part(&part[..length], &mut each) {
            break;
        }
    }
    Ok(())
}

/// Reads the messages of one part; returns true if it was the last.
pub(super) fn read_part(part: &[u8], mut each: impl FnMut(u16, &[u8])) -> bool {
    let mut rest = part;
    while let Some((length, kind)) = head(rest) {
        if [DONE, ERROR].contains(&kind) {
            return true;
        }
        each(kind, rest.get(HEAD..length).unwrap_or_default());
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    // What is no message ends the reading.
    part.len() < HEAD
}

/// Returns length and type of a message that begins here and ends in here.
fn head(bytes: &[u8]) -> Option<(usize, u16)> {
    let length = word(bytes, 0)? as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    (HEAD..=bytes.len()).contains(&length).then_some((length, kind))
}

/// Returns the word of 32 bits at this place.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Returns the value of the first attribute of this type.
pub(super) fn attribute(mut attributes: &[u8], wanted: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = u16::from_ne_bytes(attributes.get(..2)?.try_into().ok()?);
        let kind = u16::from_ne_bytes(attributes.get(2..4)?.try_into().ok()?);
        let value = attributes.get(4..usize::from(length))?;
        if kind == wanted {
            return Some(value);
        }
        attributes = attributes.get(usize::from(length).next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let mut all = ((HEAD + body.len()) as u32).to_ne_bytes().to_vec();
        all.extend(kind.to_ne_bytes());
        all.resize(HEAD, 0);
        all.extend(body);
        all.resize(all.len().next_multiple_of(4), 0);
        all
    }

    /// Returns the messages of a part, and true if it is the last.
    fn read(part: &[u8]) -> (Vec<(u16, Vec<u8>)>, bool) {
        let mut found = Vec::new();
        let is_last = read_part(part, |kind, body| found.push((kind, body.to_vec())));
        (found, is_last)
    }

    #[test]
    fn a_part_ends_with_its_last_message_and_none_that_is_cut_off_is_read() {
        let whole = [message(20, b"first"), message(21, b"second"), message(DONE, b"")].concat();
        let both = vec![(20, b"first".to_vec()), (21, b"second".to_vec())];
        assert_eq!(read(&whole), (both, true));
        for length in 0..whole.len() {
            assert!(read(&whole[..length]).0.len() <= 2, "{length}");
        }
        assert_eq!(read(&message(ERROR, &[0; 4])), (vec![], true));
    }

    #[test]
    fn the_attribute_of_a_type_is_found_behind_others() {
        let all = [6u16.to_ne_bytes(), 1u16.to_ne_bytes(), [7, 8], [0, 0]].concat();
        let all =
            [&all[..], &8u16.to_ne_bytes(), &2u16.to_ne_bytes(), &9u32.to_ne_bytes()].concat();
        assert_eq!(attribute(&all, 2).and_then(|value| word(value, 0)), Some(9));
        assert_eq!((attribute(&all, 3), attribute(&all[..all.len() - 1], 2)), (None, None));
    }
}
