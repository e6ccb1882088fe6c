//! Frames of the control protocol: a length of 4 bytes (little endian), then a message in postcard.
//! The length is checked before anything is allocated.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use wiregauge_plan::plain;

/// Longest frame: fits an outcome with a full histogram (60 thousand buckets of at most 12 bytes).
pub const LONGEST: usize = 1 << 20;

/// Why a frame could not be sent or received.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The channel was closed between two frames.
    #[error("the control channel was closed")]
    Closed,
    /// The channel failed, or ended within a frame.
    #[error("the control channel failed: {0}")]
    Channel(#[from] io::Error),
    /// Too long.
    #[error("control frame too long: {0} B, at most {LONGEST} B")]
    TooLong(usize),
    /// Not a message of this protocol.
    #[error("invalid control frame: {0}")]
    Foreign(#[from] postcard::Error),
}

/// Writes one message.
pub fn write<T: Serialize>(channel: &mut impl Write, message: &T) -> Result<(), FrameError> {
    write_body(channel, &postcard::to_stdvec(message)?)
}

/// Writes an encoded message.
pub fn write_body(channel: &mut impl Write, body: &[u8]) -> Result<(), FrameError> {
    ensure!(body.len() <= LONGEST, FrameError::TooLong(body.len()));
    // In one write, so that frames of two threads do not mix.
    let mut whole = (body.len() as u32).to_le_bytes().to_vec();
    whole.extend(body);
    channel.write_all(&whole)?;
    Ok(channel.flush()?)
}

/// Reads one message.
pub fn read<T: DeserializeOwned>(channel: &mut impl Read) -> Result<T, FrameError> {
    Ok(postcard::from_bytes(&read_body(channel)?)?)
}

/// Reads one message whose texts may be shown: no terminal obeys any of them.
pub fn read_plain<T: DeserializeOwned>(channel: &mut impl Read) -> Result<T, FrameError> {
    let body = read_body(channel)?;
    Ok(plain::read(&mut postcard::Deserializer::from_bytes(&body))?)
}

/// Reads an encoded message.
pub fn read_body(channel: &mut impl Read) -> Result<Vec<u8>, FrameError> {
    let mut length = [0; 4];
    match channel.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            return Err(FrameError::Closed);
        }
        other => other?,
    }
    let length = u32::from_le_bytes(length) as usize;
    ensure!(length <= LONGEST, FrameError::TooLong(length));
    let mut body = vec![0; length];
    channel.read_exact(&mut body)?;
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::protocol::{FromAgent, ToAgent};
    use proptest::prelude::*;
    use wiregauge_host::trace::report::{MOST_THREADS as MOST_TIDS, STAMPS_PER_FRAME};
    use wiregauge_host::trace::{Kind, MOST_CPUS, Stamp};
    use wiregauge_plan::request::{MOST_QUEUES, MOST_THREADS};
    use wiregauge_transport::Blob;

    proptest! {
        #[test]
        fn foreign_bytes_give_an_error_and_no_panic(bytes: Vec<u8>) {
            let _ = read::<ToAgent>(&mut bytes.as_slice());
            let _ = read_plain::<FromAgent>(&mut bytes.as_slice());
        }
    }

    #[test]
    fn a_frame_that_claims_to_be_long_is_refused_before_it_is_read() {
        let claim = u32::MAX.to_le_bytes();
        let refused = read::<ToAgent>(&mut claim.as_slice());
        assert!(matches!(refused, Err(FrameError::TooLong(_))), "{refused:?}");
    }

    #[test]
    fn what_an_agent_says_is_plain_wherever_it_says_it() {
        let bad = || "\u{1b}]0;title\u{7}".to_string();
        for sent in [
            FromAgent::Welcome { pid: 1, tool: bad(), program: None },
            FromAgent::Connected(vec![vec![(bad(), bad())]]),
            FromAgent::Refused { wrong_use: false, sentence: bad() },
        ] {
            let mut channel = Vec::new();
            write(&mut channel, &sent).unwrap();
            let read: FromAgent = read_plain(&mut channel.as_slice()).unwrap();
            let plain =
                format!("{sent:?}").replace(r"\u{1b}", r"\\u{1b}").replace(r"\u{7}", r"\\u{7}");
            assert_eq!(format!("{read:?}"), plain);
        }
    }

    #[test]
    fn the_addresses_of_as_many_queue_pairs_as_a_rank_has_fit_a_frame() {
        let of_thread = 128 + 8 * MOST_QUEUES as usize / MOST_THREADS as usize;
        let all = vec![vec![Blob(vec![0xff; of_thread])]; MOST_THREADS as usize];
        let mut channel = Vec::new();
        write(&mut channel, &FromAgent::Opened(all.clone())).unwrap();
        write(&mut channel, &ToAgent::Connect(all)).unwrap();
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut channel = Vec::new();
        write(&mut channel, &ToAgent::Expect { thread: 1, messages: 7 }).unwrap();
        let back: ToAgent = read(&mut channel.as_slice()).unwrap();
        assert!(matches!(back, ToAgent::Expect { thread: 1, messages: 7 }));
    }

    #[test]
    fn a_full_frame_of_the_largest_stamps_comes_back() {
        let largest = Stamp {
            time_ns: u64::MAX,
            tid: MOST_TIDS - 1,
            flow: u32::MAX,
            number: u32::MAX,
            length: u32::MAX,
            cpu: MOST_CPUS as u16 - 1,
            kind: Kind::Switch,
            in_kernel_thread: true,
        };
        let all = vec![largest; STAMPS_PER_FRAME];
        let mut channel = Vec::new();
        write(&mut channel, &FromAgent::Stamps(all.clone())).unwrap();
        let Ok(FromAgent::Stamps(back)) = read(&mut channel.as_slice()) else { panic!() };
        assert_eq!(back, all);
    }
}
