//! Several endpoints of one thread, polled together.
//!
//! Of sockets epoll (level-triggered) tells which are readable. Other ends are polled in turn; if
//! the kernel reports the next event of an end that was armed, epoll wakes a sleeping thread.

use super::optional::Watched;
use super::{Endpoint, Events, Link};
use rustix::event::epoll;
use rustix::event::{Timespec, epoll::EventData};
use std::any::Any;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use wiregauge_base::units::Span;

/// Most endpoints that one epoll_wait reports.
const AT_ONCE: usize = 64;
/// An epoll_wait that does not wait.
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// Several connected ends.
pub struct EndpointSet<E> {
    /// The ends.
    pub ends: Box<[E]>,
    turns: Turns,
}

/// Which ends are to be looked at.
#[derive(Default)]
struct Turns {
    watch: Option<Watch>,
    /// Timeout of a sleep, where messages may be lost.
    patience: Option<Timespec>,
    /// Ends that are polled whatever epoll says: those with posts that have not completed, or with
    /// messages for which a poll had no room.
    restless: Vec<u32>,
    is_restless: Box<[bool]>,
    /// The ends of this turn; kept for its memory.
    turn: Vec<u32>,
}

/// An epoll of all ends.
enum Watch {
    /// It tells which ends have something.
    Level(OwnedFd),
    /// It tells which ends have had an event since they were armed: enough to wake a thread.
    Armed(Alarm),
}

/// What wakes a thread that sleeps over armed ends.
struct Alarm {
    epoll: OwnedFd,
    /// Whether each has been readable since it was armed.
    was_readable: Box<[bool]>,
    /// Whether the last look found something. Memory is given back by the next one, and more may
    /// have come before the ends were armed.
    has_found: bool,
}

/// What an end has left after a look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Posts that have not completed, messages for which a poll had no room, or a link that is
    /// down: it is polled again, whatever the kernel says.
    is_restless: bool,
    /// Anything that was found, or for which there was no room: an armed end is looked at again
    /// before a sleep.
    is_awake: bool,
}

impl<E: Endpoint> EndpointSet<E> {
    /// Over these ends; a sleep ends after `patience`, where there is one.
    ///
    /// # Errors
    /// epoll fails.
    pub fn new(ends: Vec<E>, patience: Option<Span>) -> io::Result<EndpointSet<E>> {
        let watched = ends.len() > 1 && ends.iter().all(|end| end.watched().is_some());
        EndpointSet::watched(ends, watched, patience)
    }

    /// The same, with epoll where `watched` says so: even for a single end, whose sleeps then end
    /// after `patience`.
    ///
    /// # Errors
    /// epoll fails.
    pub fn watched(
        ends: Vec<E>,
        watched: bool,
        patience: Option<Span>,
    ) -> io::Result<EndpointSet<E>> {
        let count = ends.len();
        let turns = Turns {
            watch: watched.then(|| watch(&ends)).transpose()?,
            patience: patience.and_then(|span| span.duration().try_into().ok()),
            restless: Vec::with_capacity(count),
            is_restless: vec![false; count].into_boxed_slice(),
            turn: Vec::with_capacity(count + AT_ONCE),
        };
        Ok(EndpointSet { ends: ends.into_boxed_slice(), turns })
    }

    /// To be called after a post to an end: it is polled until it is quiet.
    #[inline(always)]
    pub fn stir(&mut self, number: usize) {
        let turns = &mut self.turns;
        if !turns.is_restless[number] {
            turns.is_restless[number] = true;
            turns.restless.push(number as u32);
        }
    }

    /// Sleeps until an end has something or, if `sends` says so of it, can take more; until a
    /// signal comes; or for so long. Returns at once where the kernel does not watch the ends, and
    /// where they have to be looked at first.
    pub fn sleep(&mut self, most: Span, sends: impl Fn(usize) -> bool) {
        let EndpointSet { ends, turns } = self;
        let patience = most.duration().try_into().unwrap_or(NOW);
        let watch = match &mut turns.watch {
            Some(Watch::Level(watch)) => watch,
            Some(Watch::Armed(alarm)) => return alarm.sleep(ends, Some(&patience)),
            None => return,
        };
        let ask = |flags: epoll::EventFlags| {
            for (number, end) in ends.iter().enumerate().filter(|(number, _)| sends(*number)) {
                let Some(watched) = end.watched() else { continue };
                let data = EventData::new_u64(number as u64);
                // One that cannot be asked for is asked again when the sleep is over.
                let _ = epoll::modify(&*watch, watched.descriptor(), data, flags);
            }
        };
        ask(epoll::EventFlags::IN | epoll::EventFlags::OUT);
        let mut room = [const { MaybeUninit::uninit() }; 1];
        // What it is that has come, the next look finds.
        let _ = epoll::wait(&*watch, &mut room, Some(&patience));
        ask(epoll::EventFlags::IN);
    }

    /// Calls `at` for each end that may have something. `at` polls it, or waits where its last
    /// argument is true, and returns what is [`left`]. With `sleeps` this returns when an end has
    /// something, a signal comes, or the ends have to be looked at again before a sleep; else at
    /// once.
    #[inline]
    pub fn look(&mut self, sleeps: bool, at: impl FnMut(usize, &mut E, bool) -> Left) {
        self.look_from(0, sleeps, at);
    }

    /// The same, beginning with this end where each is polled in turn; epoll has an order of its
    /// own, in which an end that was reported goes behind those that were not.
    #[inline]
    pub fn look_from(
        &mut self,
        first: usize,
        sleeps: bool,
        mut at: impl FnMut(usize, &mut E, bool) -> Left,
    ) {
        let EndpointSet { ends, turns } = self;
        let watch = match &mut turns.watch {
            Some(Watch::Level(watch)) => watch,
            Some(Watch::Armed(alarm)) => {
                if sleeps {
                    alarm.sleep(ends, turns.patience.as_ref());
                }
                let mut has_found = false;
                in_turn(ends, first, |number, end| has_found |= at(number, end, false).is_awake);
                alarm.has_found = has_found;
                return;
            }
            None => {
                let sleeps = sleeps && ends.len() == 1;
                return in_turn(ends, first, |number, end| {
                    let _ = at(number, end, sleeps);
                });
            }
        };
        turns.turn.clear();
        turns.turn.append(&mut turns.restless);
        let is_awake = !sleeps || !turns.turn.is_empty();
        let patience = if is_awake { Some(&NOW) } else { turns.patience.as_ref() };
        // EINTR comes back with nothing.
        let mut room = [const { MaybeUninit::uninit() }; AT_ONCE];
        let ready = epoll::wait(&*watch, &mut room, patience);
        let ready = ready.map_or(&[][..], |(ready, _)| ready);
        for event in ready {
            let number = event.data.u64() as u32;
            if !turns.is_restless[number as usize] {
                turns.turn.push(number);
            }
        }
        for number in &turns.turn {
            let place = *number as usize;
            let again = at(place, &mut ends[place], false).is_restless;
            turns.is_restless[place] = again;
            if again {
                turns.restless.push(*number);
            }
        }
    }
}

/// Calls `at` for each end, beginning with this one.
#[inline(always)]
fn in_turn<E>(ends: &mut [E], first: usize, mut at: impl FnMut(usize, &mut E)) {
    let (before, from) = ends.split_at_mut(first.min(ends.len()));
    for (number, end) in from.iter_mut().enumerate() {
        at(before.len() + number, end);
    }
    for (number, end) in before.iter_mut().enumerate() {
        at(number, end);
    }
}

impl Alarm {
    /// Sleeps for so long at most, once all ends are armed and a look since has found nothing.
    /// While looks find something nothing is armed, which would cost each of them a call an end.
    fn sleep<E: Endpoint>(&mut self, ends: &mut [E], most: Option<&Timespec>) {
        if self.has_found {
            return;
        }
        let mut may_sleep = true;
        for (end, was_readable) in ends.iter_mut().zip(&mut self.was_readable) {
            may_sleep &= end.arm(std::mem::take(was_readable));
        }
        if !may_sleep {
            return;
        }
        // EINTR comes back with nothing. Those for which there is no room are reported next time.
        let mut room = [const { MaybeUninit::uninit() }; AT_ONCE];
        let ready = epoll::wait(&self.epoll, &mut room, most);
        for event in ready.map_or(&[][..], |(ready, _)| ready) {
            if let Some(was_readable) = self.was_readable.get_mut(event.data.u64() as usize) {
                *was_readable = true;
            }
        }
    }
}

impl EndpointSet<Box<dyn Endpoint>> {
    /// Takes the ends out as their own type, where all are of type `E`. The set is empty until they
    /// are put back. Both allocate.
    pub fn take_typed<E: Endpoint>(&mut self) -> Option<EndpointSet<E>> {
        if !self.ends.iter().all(|end| (&**end as &dyn Any).is::<E>()) {
            return None;
        }
        let typed = |end: Box<dyn Endpoint>| Some(*(end as Box<dyn Any>).downcast::<E>().ok()?);
        let ends = std::mem::take(&mut self.ends).into_iter().filter_map(typed).collect();
        Some(EndpointSet { ends, turns: std::mem::take(&mut self.turns) })
    }

    /// Puts them back.
    pub fn put_back<E: Endpoint>(&mut self, typed: EndpointSet<E>) {
        self.ends = typed.ends.into_iter().map(|end| Box::new(end) as _).collect();
        self.turns = typed.turns;
    }
}

fn watch<E: Endpoint>(ends: &[E]) -> io::Result<Watch> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut is_armed = false;
    for (number, end) in ends.iter().enumerate() {
        let Some(watched) = end.watched() else { continue };
        is_armed |= matches!(watched, Watched::Armed(_));
        let data = EventData::new_u64(number as u64);
        epoll::add(&epoll, watched.descriptor(), data, epoll::EventFlags::IN)?;
    }
    let was_readable = vec![true; ends.len()].into_boxed_slice();
    Ok(match is_armed {
        true => Watch::Armed(Alarm { epoll, was_readable, has_found: false }),
        false => Watch::Level(epoll),
    })
}

/// What an end has left after these events, with this many posts outstanding.
#[inline(always)]
pub fn left(events: &Events, on_the_way: u32) -> Left {
    let has_more = events.is_full() || events.link != Link::Up;
    Left { is_restless: has_more || on_the_way > 0, is_awake: has_more || events.any() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::NullEndpoint;
    use crate::shm::ShmEndpoint;
    use crate::{Blob, Posted, Role, Setup, Slot, Traffic, TransportKind, Wait};
    use rustix::event::{EventfdFlags, eventfd};
    use std::os::fd::AsFd;
    use std::time::Instant;

    /// An end that the kernel knows of once it was armed, as an adapter's completions.
    struct Bell {
        alarm: OwnedFd,
        is_armed: bool,
        came: u32,
    }

    impl Bell {
        fn ring(&mut self) {
            self.came += 1;
            if std::mem::take(&mut self.is_armed) {
                rustix::io::write(&self.alarm, &1u64.to_ne_bytes()).unwrap();
            }
        }
    }

    impl Endpoint for Bell {
        fn slots(&self) -> u32 {
            1
        }

        fn payload(&mut self, _: Slot) -> &mut [u8] {
            &mut []
        }

        fn post(&mut self, _: Slot, _: usize) -> Posted {
            Posted::Full
        }

        fn flush(&mut self) {}

        fn poll(&mut self, events: &mut Events) -> bool {
            events.clear();
            events.completed = std::mem::take(&mut self.came);
            events.any()
        }

        fn wait(&mut self, _: &mut Events) {}

        fn watched(&self) -> Option<Watched<'_>> {
            Some(Watched::Armed(self.alarm.as_fd()))
        }

        fn arm(&mut self, was_readable: bool) -> bool {
            if was_readable {
                let _ = rustix::io::read(&self.alarm, &mut [0; 8]);
                self.is_armed = true;
            }
            !was_readable
        }
    }

    #[test]
    fn an_armed_end_is_looked_at_before_a_sleep_which_it_ends() {
        /// A sleep that nothing ends takes longer than the test may.
        const FOREVER: Span = Span(100_000_000_000);
        let bell = |_| Bell {
            alarm: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap(),
            is_armed: false,
            came: 0,
        };
        let begin = Instant::now();
        let mut set = EndpointSet::new((0..3).map(bell).collect(), Some(FOREVER)).unwrap();
        let mut events = Events::default();
        let look = |set: &mut EndpointSet<Bell>, events: &mut Events, sleeps| {
            let mut found = Vec::new();
            set.look(sleeps, |number, end, sleeps| {
                assert!(!sleeps, "each is polled: no one end may sleep for all");
                if end.poll(events) {
                    found.push(number);
                }
                left(events, 0)
            });
            found
        };
        let mut turn = |alone: bool, rings: &[usize]| {
            rings.iter().for_each(|number| set.ends[*number].ring());
            if alone {
                set.sleep(FOREVER, |_| true);
            }
            let found = look(&mut set, &mut events, !alone);
            (found, set.ends.iter().all(|end| end.is_armed))
        };
        // It came before anything was armed.
        assert_eq!(turn(false, &[1]), (vec![1], true));
        assert_eq!(turn(false, &[]), (vec![], true));
        for alone in [false, true] {
            assert_eq!(turn(alone, &[0, 2]), (vec![0, 2], false));
            // What came with it is looked for; then what was heard is armed again.
            assert_eq!(turn(alone, &[]), (vec![], false));
            assert_eq!(turn(alone, &[]), (vec![], true));
        }
        // What a look leaves keeps it awake, since nothing says so again.
        events.limit(0);
        assert!(look(&mut set, &mut events, false).is_empty());
        set.sleep(FOREVER, |_| true);
        assert!(begin.elapsed() < FOREVER.duration(), "a sleep that nothing has ended");
    }

    #[test]
    fn ends_are_taken_out_by_their_own_type_alone_and_put_back() {
        let end = |size| {
            let setup = Setup::new(Role::Client, Traffic::Echo { every: 1 }, Wait::Busy, size);
            let opening = TransportKind::INSTRUMENT.open(&setup).unwrap();
            opening.connect(&Blob::default()).unwrap().endpoint
        };
        let mut set = EndpointSet::new(vec![end(8), end(16)], None).unwrap();
        assert!(set.take_typed::<ShmEndpoint>().is_none());
        let mut typed = set.take_typed::<NullEndpoint>().unwrap();
        assert_eq!((typed.ends.len(), set.ends.len()), (2, 0));
        typed.ends[1].payload(Slot::sending(0))[15] = 7;
        set.put_back(typed);
        assert_eq!(set.ends.len(), 2);
        assert_eq!(set.ends[1].payload(Slot::sending(0))[15], 7);
    }
}
