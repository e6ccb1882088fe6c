//! The stamps of messages of which several are on the way at a time.
//!
//! A connection is two streams, one each way. A message has a place in its stream: the bytes from
//! one to another (TCP and Unix sockets) or a number (UDP). A stamp covers such a range too, since
//! the kernel stamps sequence numbers of TCP, the number in a datagram, and how many bytes were
//! copied. The stamp of a message is the first that covers its last byte: until then it is not
//! there as a whole. A datagram that has come to its socket has no number any more: a socket is a
//! queue, so those that were not dropped leave it in the order in which they came.

use super::apart::Kernels;
use super::path::{Match, Step, Way};
use super::stamps::{Found, Positions, Stamps, UNSEEN, in_flow, reversed};
use std::collections::BTreeMap;
use std::ops::Range;
use wiregauge_host::trace::{Kind, Stamp};
use wiregauge_plan::Followed;
use wiregauge_sample::{Flags, Sample};
use wiregauge_transport::KernelPath;

/// Places that are tried for a byte: where a segment was sent again, several ranges end alike.
const MOST_TRIED: usize = 64;

/// What a stamp covers of its stream.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    from: u64,
    to: u64,
    stamp: usize,
}

/// The stamps of one kind, by what they cover.
struct Places(Vec<Place>);

impl Places {
    fn new(mut all: Vec<Place>) -> Places {
        all.retain(|place| place.from < place.to);
        all.sort_by_key(|place| (place.to, place.stamp));
        Places(all)
    }

    /// The first that has the last unit of a range.
    fn of(&self, range: &Range<u64>) -> Option<usize> {
        let first = self.0.partition_point(|place| place.to < range.end);
        let mut near = self.0[first..].iter().take(MOST_TRIED);
        near.find(|place| place.from < range.end).map(|place| place.stamp)
    }

    /// The last that has it before another stamp.
    fn of_before(&self, range: &Range<u64>, end: usize) -> Option<usize> {
        let first = self.0.partition_point(|place| place.to < range.end);
        let near = self.0[first..].iter().take(MOST_TRIED);
        let own = near.filter(|place| place.from < range.end && place.stamp < end);
        own.map(|place| place.stamp).max()
    }

    /// The last of those that have nothing of a range or of what comes after it.
    fn before(&self, range: &Range<u64>) -> Option<usize> {
        let end = self.0.partition_point(|place| place.to <= range.start);
        self.0[..end].last().map(|place| place.stamp)
    }

    /// How far the stream has come at a stamp, where it comes in order.
    fn reached(&self, stamp: usize) -> u64 {
        let end = self.0.partition_point(|place| place.stamp <= stamp);
        self.0[..end].last().map_or(0, |place| place.to)
    }
}

/// One way of a connection.
struct Stream {
    sender: u32,
    receiver: u32,
    places: BTreeMap<u8, Places>,
    /// The messages, in the order of sending.
    messages: Vec<Range<u64>>,
}

/// What threads did, as positions of stamps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Did {
    Enter,
    Exit,
    IsWoken,
    TakesCpu,
    /// Passed a trace point of some message's way.
    Works,
}

struct Threads(BTreeMap<(Did, u32), Vec<usize>>);

impl Threads {
    fn new(stamps: &[Stamp], way: &Way) -> Threads {
        let mut lists: BTreeMap<(Did, u32), Vec<usize>> = BTreeMap::new();
        let is_passed = |kind| way.steps.iter().any(|step| step.kind == kind);
        for (position, stamp) in stamps.iter().enumerate() {
            let (did, thread) = match stamp.kind {
                Kind::SysEnter => (Did::Enter, stamp.tid),
                Kind::SysExit => (Did::Exit, stamp.tid),
                Kind::Waking => (Did::IsWoken, stamp.flow),
                Kind::Switch => (Did::TakesCpu, stamp.flow),
                Kind::Send | Kind::Ready | Kind::Copied => (Did::Works, stamp.tid),
                // An acknowledgement is no message.
                kind if stamp.length > 0 && is_passed(kind) => (Did::Works, stamp.tid),
                _ => continue,
            };
            lists.entry((did, thread)).or_default().push(position);
        }
        Threads(lists)
    }

    fn list(&self, did: Did, thread: u32) -> &[usize] {
        self.0.get(&(did, thread)).map_or(&[], Vec::as_slice)
    }

    fn last_before(&self, did: Did, thread: u32, position: usize) -> Option<usize> {
        let list = self.list(did, thread);
        list[..list.partition_point(|at| *at < position)].last().copied()
    }

    fn first_after(&self, did: Did, thread: u32, position: usize) -> Option<usize> {
        let list = self.list(did, thread);
        list.get(list.partition_point(|at| *at <= position)).copied()
    }
}

/// Finds the stamps of the samples with these numbers. Those of which the connection was not found
/// are not among the result.
pub(super) fn follow(
    measured: &[usize],
    samples: &[Sample],
    stamps: &Stamps<'_>,
    way: &Way,
    begin: &Step,
) -> Vec<Found> {
    let threads = Threads::new(stamps.all, way);
    let of = |one| of_connection((measured, one), samples, (stamps, &threads), way, begin);
    stamps.owners.connections().flat_map(of).collect()
}

/// The same of those of a connection: a thread of the client, and which of its own.
fn of_connection(
    (measured, connection): (&[usize], (u32, u32)),
    samples: &[Sample],
    (stamps, threads): (&Stamps<'_>, &Threads),
    way: &Way,
    begin: &Step,
) -> Vec<Found> {
    let is_own =
        |number: usize| (samples[number].thread, stamps.owners.connection(number)) == connection;
    let was_sent = |(number, sample): &(usize, &Sample)| {
        let never = [Flags::UNSENT, Flags::MISSED].iter().any(|flag| sample.flags.has(*flag));
        is_own(*number) && !never && sample.submit_ns.is_finite()
    };
    let sent = samples.iter().enumerate().filter(was_sent).map(|(_, sample)| sample);
    let sent: Vec<&Sample> = sent.collect();
    let streams = streams(&sent, (stamps, stamps.owners.of(connection.0)), way, begin);
    let Some(server) = streams.first().map(|there| there.receiver) else { return Vec::new() };
    let client = streams[0].sender;
    let one = |number: &usize| {
        let sample = &samples[*number];
        let place = sent.binary_search_by_key(&sample.sequence, |sample| sample.sequence).ok()?;
        let mut found = Found {
            sample: *number,
            threads: [client, server],
            range: stamps.between(way.start_ns(sample), sample.receive_ns),
            legs: Vec::new(),
            ahead: Vec::new(),
        };
        for stream in &streams {
            let finder = Finder { stream, threads, way, begin };
            // What comes after the last stamp of a leg is of the next.
            let before = found.legs.last().and_then(|leg| leg.iter().flatten().copied().max());
            let (leg, ahead) = finder.leg(place, before)?;
            found.legs.push(leg);
            found.ahead.push(ahead);
        }
        Some(found)
    };
    measured.iter().filter(|number| is_own(**number)).filter_map(one).collect()
}

/// The streams of the connection that the first message goes over; empty: it was not found.
/// `owners`: its threads, where there are others. A thread posts a message as soon as it has
/// stamped it, so its next call is of that one.
fn streams(
    sent: &[&Sample],
    (stamps, owners): (&Stamps<'_>, Option<[u32; 2]>),
    way: &Way,
    begin: &Step,
) -> Vec<Stream> {
    let Some(first) = sent.first() else { return Vec::new() };
    let start = stamps.times_ns.partition_point(|time| *time < first.submit_ns);
    let is_begin = |stamp: &&Stamp| {
        stamp.kind == begin.kind && (begin.by != Match::Packet || stamp.length > 0)
    };
    let own = &stamps.all[start..];
    let is_by_client = |stamp: &&Stamp| owners.is_none_or(|[client, _]| client == stamp.tid);
    let Some(there) = own.iter().filter(is_begin).find(is_by_client) else { return Vec::new() };
    let (client, flow) = (there.tid, there.flow);
    let copies = |not: u32, flow: u32| {
        if let (Some([client, server]), 0) = (owners, flow) {
            return Some(if not == client { server } else { client });
        }
        let all = own.iter().filter(|stamp| stamp.kind == Kind::Copied && stamp.tid != not);
        let known = all.clone().find(|stamp| stamp.flow == flow);
        let found = known.or_else(|| all.clone().find(|stamp| in_flow(stamp, flow)));
        found.map(|stamp| stamp.tid)
    };
    let server = match way.kernels {
        Kernels::Ours => Some(UNSEEN),
        Kernels::One | Kernels::Both => copies(client, flow),
    };
    let Some(server) = server else { return Vec::new() };
    let is_numbered = way.path == KernelPath::Datagrams;
    let stream = |flow: u32, [sender, receiver]: [u32; 2], reply: Option<u32>| {
        let mut end = 0;
        let messages = sent.iter().map(|sample| {
            if is_numbered {
                let number = u64::from(sample.sequence as u32);
                return number..number + 1;
            }
            let begin = end;
            end += u64::from(reply.unwrap_or(sample.size)) + u64::from(way.framing);
            begin..end
        });
        let messages = messages.collect();
        let reader = Reader { all: stamps.all, start, flow, sender, receiver };
        let places = reader.places(way, begin);
        Stream { sender, receiver, places, messages }
    };
    let mut streams = vec![stream(flow, [client, server], None)];
    if let Followed::RoundTrips { reply } = way.followed {
        let back = reversed(flow);
        let reader = copies(server, back).unwrap_or(client);
        let reply = reply.map(|length| length.0.min(u64::from(u32::MAX)) as u32);
        streams.push(stream(back, [server, reader], reply));
    }
    streams
}

/// Reads what the stamps of a stream cover.
struct Reader<'a> {
    all: &'a [Stamp],
    /// The first stamp after the first message was submitted.
    start: usize,
    flow: u32,
    sender: u32,
    receiver: u32,
}

impl Reader<'_> {
    /// By the number of the kind.
    fn places(&self, way: &Way, begin: &Step) -> BTreeMap<u8, Places> {
        let places = match way.path {
            KernelPath::Segments => self.segments(way, begin),
            KernelPath::Datagrams => self.datagrams(way),
            _ => self.local(),
        };
        places.into_iter().map(|(kind, places)| (kind as u8, Places::new(places))).collect()
    }

    fn own(&self, kind: Kind) -> impl Iterator<Item = (usize, &Stamp)> {
        let all = self.all.iter().enumerate().skip(self.start);
        all.filter(move |(_, stamp)| stamp.kind == kind && self.has(stamp))
    }

    /// Returns true if a stamp is of this stream: a copy without a flow may be one that any thread
    /// made from another socket, so that only the receiver's count.
    fn has(&self, stamp: &Stamp) -> bool {
        let is_known = stamp.flow == self.flow;
        is_known || (in_flow(stamp, self.flow) && stamp.tid == self.receiver)
    }

    fn kinds(way: &Way) -> Vec<Kind> {
        let own = way.steps.iter().filter(|step| step.by.is_in_stream());
        own.map(|step| step.kind).collect()
    }

    /// Of TCP by its sequence numbers, of which the first message has the first.
    fn segments(&self, way: &Way, begin: &Step) -> Vec<(Kind, Vec<Place>)> {
        let is_begin = |(_, stamp): &(usize, &Stamp)| begin.kind == Kind::Send || stamp.length > 0;
        // Of an end that is not seen the first that comes.
        let comes = || self.own(Kind::Receive).find(|(_, stamp)| stamp.length > 0);
        let first = self.own(begin.kind).find(is_begin).or_else(comes);
        let Some((_, first)) = first else { return Vec::new() };
        let base = first.number;
        let of_kind = |kind: Kind| {
            let mut clock = Unwrapped::new(base);
            let is_place = matches!(kind, Kind::Send | Kind::Ready | Kind::Copied);
            // The number of an acknowledgement may be of the other way.
            let own = self.own(kind).filter(|(_, one)| is_place || one.length > 0);
            let all = own.filter_map(|(stamp, one)| {
                let number = clock.of(one.number);
                let (from, to) = match kind {
                    Kind::Send => (number, number),
                    Kind::Ready | Kind::Copied => (0, number),
                    _ => (number, number + i64::from(one.length)),
                };
                (to >= 0).then(|| Place { from: from.max(0) as u64, to: to as u64, stamp })
            });
            let mut all: Vec<Place> = all.collect();
            if kind == Kind::Send {
                // A call hands over the bytes up to the next one's.
                let mut next = u64::MAX;
                for place in all.iter_mut().rev() {
                    place.to = next;
                    next = place.from;
                }
            }
            (kind, all)
        };
        Reader::kinds(way).into_iter().map(of_kind).collect()
    }

    /// Of UDP by the numbers in the datagrams.
    fn datagrams(&self, way: &Way) -> Vec<(Kind, Vec<Place>)> {
        let place = |stamp: usize, number: u32| {
            let from = u64::from(number);
            Place { from, to: from + 1, stamp }
        };
        let queued = self.queued();
        let of_kind = |kind: Kind| {
            let places = match kind {
                Kind::Ready | Kind::Copied => {
                    let own = self.own(kind).zip(&queued);
                    own.map(|((stamp, _), number)| place(stamp, *number)).collect()
                }
                _ => {
                    let own = self.own(kind).filter(|(_, one)| one.length > 0);
                    own.map(|(stamp, one)| place(stamp, one.number)).collect()
                }
            };
            (kind, places)
        };
        Reader::kinds(way).into_iter().map(of_kind).collect()
    }

    /// The numbers of the datagrams that came into their socket, in this order.
    fn queued(&self) -> Vec<u32> {
        let mut queued: Vec<(u16, u32)> = Vec::new();
        let all = self.all.iter().skip(self.start).filter(|stamp| stamp.flow == self.flow);
        for stamp in all {
            match stamp.kind {
                Kind::Receive if stamp.length > 0 => queued.push((stamp.cpu, stamp.number)),
                Kind::Dropped => {
                    // It is the one that this CPU was at.
                    let last = queued.iter().rposition(|(cpu, _)| *cpu == stamp.cpu);
                    last.map(|last| queued.remove(last));
                }
                _ => {}
            }
        }
        queued.into_iter().map(|(_, number)| number).collect()
    }

    /// Of Unix sockets: the sender announces each buffer, the receiver copies it, whole or in
    /// parts.
    fn local(&self) -> Vec<(Kind, Vec<Place>)> {
        let (mut copied, mut buffers) = (Vec::new(), Vec::new());
        let (mut begin, mut of_buffer) = (0, 0);
        let own = self.own(Kind::Copied).filter(|(_, one)| one.tid == self.receiver);
        for (stamp, one) in own {
            of_buffer += u64::from(one.length);
            copied.push(Place { from: 0, to: begin + of_buffer, stamp });
            if of_buffer >= u64::from(one.number) {
                buffers.push((begin, begin + of_buffer));
                (begin, of_buffer) = (begin + of_buffer, 0);
            }
        }
        let announced = self.own(Kind::Ready).filter(|(_, one)| one.tid == self.sender);
        let ready = announced.zip(buffers);
        let ready = ready.map(|((stamp, _), (from, to))| Place { from, to, stamp }).collect();
        vec![(Kind::Ready, ready), (Kind::Copied, copied)]
    }
}

/// Sequence numbers of TCP from the first byte on, which may pass 2^32.
struct Unwrapped {
    last: u32,
    at: i64,
}

impl Unwrapped {
    fn new(base: u32) -> Unwrapped {
        Unwrapped { last: base, at: 0 }
    }

    fn of(&mut self, number: u32) -> i64 {
        self.at += i64::from(number.wrapping_sub(self.last) as i32);
        self.last = number;
        self.at
    }
}

/// Finds the stamps of messages of one stream.
struct Finder<'a> {
    stream: &'a Stream,
    threads: &'a Threads,
    way: &'a Way,
    begin: &'a Step,
}

impl Finder<'_> {
    fn place(&self, kind: Kind, range: &Range<u64>) -> Option<usize> {
        self.stream.places.get(&(kind as u8))?.of(range)
    }

    /// The stamps of a message's steps, and how many messages were in the socket before it.
    /// `before` is the last stamp of the leg before this one.
    fn leg(&self, number: usize, before: Option<usize>) -> Option<(Positions, u32)> {
        let Finder { stream, threads, way, begin } = self;
        let range = stream.messages.get(number)?;
        let arrived = self.place(Kind::Ready, range).or_else(|| self.place(Kind::Receive, range));
        let copied = self.place(Kind::Copied, range);
        let readable = self.place(Kind::Ready, range).or(copied);
        let begins = self.place(begin.kind, range);
        // A call passes `tcp_sendmsg_locked` again where a message goes on in another page: its
        // first byte's stamp is no other message's.
        let first = self.place(begin.kind, &(range.start..range.start + 1)).or(begins);
        let wake = arrived.zip(copied).and_then(|(arrived, copied)| {
            let woken = threads.last_before(Did::IsWoken, stream.receiver, copied)?;
            let takes = threads.first_after(Did::TakesCpu, stream.receiver, woken)?;
            // It may have been woken for the message before.
            (takes > arrived && takes < copied).then_some((woken, takes))
        });
        let position = |step: &Step| match step.by {
            Match::Packet | Match::Flow | Match::Sender => self.place(step.kind, range),
            Match::LastPacket | Match::LastBeforeReady => {
                let places = stream.places.get(&(step.kind as u8))?;
                places.of_before(range, readable?)
            }
            Match::Receiver => copied,
            Match::Numbered | Match::Returned => None,
            Match::CallOfSender => threads.last_before(Did::Enter, stream.sender, begins?),
            Match::Wake => wake.map(|(woken, _)| woken).filter(|woken| Some(*woken) > arrived),
            Match::Takes => wake.map(|(_, takes)| takes),
            Match::Ahead => {
                let last = stream.places.get(&(Kind::Copied as u8))?.before(range)?;
                (last > arrived? && last < copied?).then_some(last)
            }
            Match::Served => {
                let call = threads.last_before(Did::Enter, stream.sender, first?).or(first)?;
                // Once it has called, what it does for others interrupts it.
                let last = threads.last_before(Did::Works, stream.sender, call)?;
                (last > before?).then_some(last)
            }
            Match::ReturnOfReceiver => threads.first_after(Did::Exit, stream.receiver, copied?),
        };
        let ahead = arrived.map_or(0, |arrived| self.ahead(number, arrived));
        Some((way.steps.iter().map(position).collect(), ahead))
    }

    /// Messages in front of one that came at a stamp: sent before it and not copied.
    fn ahead(&self, number: usize, arrived: usize) -> u32 {
        let messages = &self.stream.messages;
        let Some(copied) = self.stream.places.get(&(Kind::Copied as u8)) else { return 0 };
        let reached = copied.reached(arrived);
        let gone = messages.partition_point(|range| range.end <= reached);
        number.saturating_sub(gone) as u32
    }
}

#[cfg(test)]
mod tests;
