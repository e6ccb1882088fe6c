//! A stream's samples on their way to a file: a ring that a measured loop fills, and a thread that
//! empties it.
//!
//! The loop never waits: where the ring is full, a sample is left out of the file and counted. The
//! figures do not depend on the file, since they are made of stamps that the recorder keeps.

use super::format::Format;
use super::{Kind, MOST_VALUES, TimeOfDay, message_bytes, number, read_message};
use rtrb::{Consumer, Producer, RingBuffer};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use wiregauge_base::threads;
use wiregauge_clock::{Ticks, Timebase};

/// Bytes of the ring: a disk that pauses for a third of a second at 200 MB/s loses nothing.
const RING: usize = 64 << 20;
/// Bytes that are written at once.
const BLOCK: usize = 1 << 20;
/// How long the writer sleeps when the ring is empty.
const PAUSE: Duration = Duration::from_millis(1);
/// In the ring a message stands behind its length and the time at which it came.
const HEAD: usize = 4 + 8;

/// Where and how samples are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keep {
    /// The file, which must not exist.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The kind of the values.
    pub kind: Kind,
}

impl Keep {
    /// The file of a round, where there are several: its number stands before the extension.
    #[must_use]
    pub fn of_round(&self, round: u32) -> Keep {
        let mut name = self.path.file_stem().unwrap_or_default().to_os_string();
        name.push(format!(".{round}"));
        if let Some(extension) = self.path.extension() {
            name.push(".");
            name.push(extension);
        }
        Keep { path: self.path.with_file_name(name), ..self.clone() }
    }
}

/// What became of a stream's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Samples in the file.
    pub written: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// Samples that are not in it: the ring was full, or the file could not be written.
    pub left_out: u64,
    /// Why the file ends before the stream, a sentence.
    pub fault: Option<String>,
}

/// The loop's end of the ring.
pub struct Sink {
    ring: Producer<u8>,
    /// Samples for which there was no room.
    pub left_out: u64,
}

impl Sink {
    /// Takes a message and the time at which it came. Called where time is measured: no allocation,
    /// no system call; it copies the message once.
    #[inline]
    pub fn take(&mut self, message: &[u8], received: Ticks) {
        let Ok(mut chunk) = self.ring.write_chunk(HEAD + message.len()) else {
            self.left_out += 1;
            return;
        };
        let (first, second) = chunk.as_mut_slices();
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&(message.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&received.0.to_le_bytes());
        put(first, second, 0, &head);
        put(first, second, HEAD, message);
        chunk.commit_all();
    }
}

/// Copies bytes to a place of two slices that follow each other.
#[inline]
fn put(first: &mut [u8], second: &mut [u8], at: usize, bytes: &[u8]) {
    let here = first.len().saturating_sub(at).min(bytes.len());
    if here > 0 {
        first[at..at + here].copy_from_slice(&bytes[..here]);
    }
    if here < bytes.len() {
        let from = (at + here) - first.len();
        second[from..from + bytes.len() - here].copy_from_slice(&bytes[here..]);
    }
}

/// The thread that writes.
pub struct Writing {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Kept>,
}

impl Writing {
    /// Opens the file and starts the thread. `epoch_ns` is the time of day, in nanoseconds since
    /// 1970, at the epoch of `time`; the thread calls `prepare` first.
    ///
    /// # Errors
    /// The file exists, or cannot be made.
    pub fn start(
        keep: &Keep,
        values: usize,
        time: Timebase,
        epoch_ns: u64,
        prepare: impl FnOnce() + Send + 'static,
    ) -> io::Result<(Sink, Writing)> {
        let file = File::create_new(&keep.path)?;
        let (mut producer, mut consumer) = RingBuffer::new(RING);
        // Each page is touched here: in the loop the first touch would be a fault.
        if let Ok(all) = producer.write_chunk(RING) {
            all.commit_all();
        }
        if let Ok(all) = consumer.read_chunk(RING) {
            all.commit_all();
        }
        let over = Arc::new(AtomicBool::new(false));
        let mut writer = Writer {
            ring: consumer,
            over: Arc::clone(&over),
            to: file,
            block: Vec::with_capacity(2 * BLOCK),
            message: Vec::with_capacity(message_bytes(MOST_VALUES)),
            format: keep.format,
            kind: keep.kind,
            time,
            epoch_ns,
            pending: 0,
            kept: Kept::default(),
        };
        writer.format.head(values, &mut writer.block);
        let thread = threads::spawn("write the samples to a file", move || {
            prepare();
            writer.run()
        })?;
        Ok((Sink { ring: producer, left_out: 0 }, Writing { over, thread }))
    }

    /// Waits until all is written that the sink has taken; what became of it.
    pub fn end(self, sink: Sink) -> Kept {
        let left_out = sink.left_out;
        drop(sink);
        self.over.store(true, Ordering::Release);
        let panicked = || Kept {
            fault: Some("the thread that writes the samples panicked".into()),
            ..Kept::default()
        };
        let mut kept = self.thread.join().unwrap_or_else(|_| panicked());
        kept.left_out += left_out;
        kept
    }
}

struct Writer<T> {
    ring: Consumer<u8>,
    over: Arc<AtomicBool>,
    to: T,
    block: Vec<u8>,
    message: Vec<u8>,
    format: Format,
    kind: Kind,
    time: Timebase,
    epoch_ns: u64,
    /// Samples of the block.
    pending: u64,
    kept: Kept,
}

impl<T: Write> Writer<T> {
    fn run(mut self) -> Kept {
        loop {
            // Read before the ring is: what came until then is in it.
            let over = self.over.load(Ordering::Acquire);
            while let Some(received) = self.next() {
                self.write(received);
            }
            if over {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.flush();
        self.kept
    }

    /// The next message of the ring, and when it came.
    fn next(&mut self) -> Option<Ticks> {
        let mut head = [0; HEAD];
        self.ring.pop_entire_slice(&mut head).ok()?;
        self.message.resize(number(&head[..4]) as usize, 0);
        self.ring.pop_entire_slice(&mut self.message).ok()?;
        Some(Ticks(number(&head[4..])))
    }

    fn write(&mut self, received: Ticks) {
        let sample = read_message(&self.message, self.kind);
        let Some(mut sample) = sample.filter(|_| self.kept.fault.is_none()) else {
            self.kept.left_out += 1;
            return;
        };
        let since = self.time.local(received).0.max(0.0) as u64;
        sample.received = Some(TimeOfDay::from_ns(self.epoch_ns.wrapping_add(since)));
        self.format.write(&sample, &mut self.block);
        self.pending += 1;
        if self.block.len() >= BLOCK {
            self.flush();
        }
    }

    /// Writes the block. Where that fails the file ends here, and what follows is counted.
    fn flush(&mut self) {
        if self.kept.fault.is_none() {
            match self.to.write_all(&self.block) {
                Ok(()) => {
                    self.kept.bytes += self.block.len() as u64;
                    self.kept.written += std::mem::take(&mut self.pending);
                }
                Err(error) => {
                    self.kept.left_out += std::mem::take(&mut self.pending);
                    self.kept.fault = Some(format!("cannot write more samples: {error}"));
                }
            }
        }
        self.block.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Shape, Source};
    use crate::{METADATA, put_metadata};

    fn message(number: u64, values: usize) -> Vec<u8> {
        let mut message = vec![0; message_bytes(values)];
        put_metadata(&mut message, number, TimeOfDay { seconds: 5, nanoseconds: 7 });
        Source::new(Shape::default(), values, 1).fill(&mut message[METADATA..], number, 0.5);
        message
    }

    /// A disk with so much room.
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 < bytes.len() {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_ends_the_file_and_counts_the_rest() {
        let (producer, consumer) = RingBuffer::new(RING);
        let mut sink = Sink { ring: producer, left_out: 0 };
        let writer = Writer {
            ring: consumer,
            over: Arc::new(AtomicBool::new(true)),
            to: Full(BLOCK + BLOCK / 2),
            block: Vec::new(),
            message: Vec::new(),
            format: Format::Binary,
            kind: Kind::Float,
            time: Timebase::nanoseconds(Ticks(0)),
            epoch_ns: 0,
            pending: 0,
            kept: Kept::default(),
        };
        // 2.5 blocks of 48 bytes each.
        let count = (5 * BLOCK / 2 / 48) as u64;
        (0..count).for_each(|number| sink.take(&message(number, 8), Ticks(1)));
        let kept = writer.run();
        assert!(kept.fault.unwrap().contains("no storage space"));
        assert!(kept.bytes > 0 && kept.bytes <= (BLOCK + BLOCK / 2) as u64);
        assert_eq!(kept.written + kept.left_out, count);
        assert!(kept.written > 0 && kept.left_out > 0);
    }

    #[test]
    fn a_ring_that_is_full_leaves_samples_out_and_does_not_wait() {
        let (producer, _consumer) = RingBuffer::new(250);
        let mut sink = Sink { ring: producer, left_out: 0 };
        // Two of 100 bytes each.
        (0..5).for_each(|number| sink.take(&message(number, 8), Ticks(1)));
        assert_eq!(sink.left_out, 3);
    }

    #[test]
    fn a_message_may_stand_at_the_ring_s_end_and_begin() {
        let (producer, consumer) = RingBuffer::new(250);
        let mut sink = Sink { ring: producer, left_out: 0 };
        let mut writer = Writer {
            ring: consumer,
            over: Arc::default(),
            to: Vec::new(),
            block: Vec::new(),
            message: Vec::new(),
            format: Format::Csv,
            kind: Kind::Float,
            time: Timebase::nanoseconds(Ticks(0)),
            epoch_ns: 0,
            pending: 0,
            kept: Kept::default(),
        };
        for number in 0..50u64 {
            let sent = message(number, 8);
            sink.take(&sent, Ticks(number));
            assert_eq!(writer.next(), Some(Ticks(number)));
            assert_eq!(writer.message, sent);
        }
        assert_eq!(sink.left_out, 0);
    }
}
