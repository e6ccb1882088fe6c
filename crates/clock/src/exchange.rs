//! Exchanges of times with another host: one datagram there, one back, and one that says when the
//! answer left.
//!
//! The kernel stamps each datagram as it leaves and as it comes, so that neither a system call nor
//! a sleeping process is part of the way. Its stamps are of CLOCK_REALTIME; each is turned into
//! this host's ticks by reading both clocks right afterwards, and rounded away from the truth: the
//! bounds of [`super::offset`] stay true. Where the kernel stamps nothing, the program's own
//! readings stand in.

use super::offset::Exchange;
use super::stamped::StampedSocket;
use super::{Clock, KernelClock, LocalNs, Source, Ticks, Timebase};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use wiregauge_base::units::InjectedClockError;

/// What the datagrams of a run begin with: nobody else's are looked at.
pub type Cookie = [u8; 32];

const ASK: u8 = 1;
const ANSWER: u8 = 2;
const FOLLOW: u8 = 3;
/// Bytes of a datagram: cookie, kind, number, a time in nanoseconds.
pub const LENGTH: usize = 32 + 1 + 8 + 8;
/// CLOCK_REALTIME may be slewed by so much against the ticks (`adjtimex(2)`).
const SLEW: f64 = 500e-6;
/// A stamp older than this when it is read is not worth its slew.
const OLDEST_NS: f64 = 20e6;
/// Readings of both clocks, of which the closest counts.
const READINGS: u32 = 3;

/// Times of another host that are taken, in nanoseconds since it was probed: 30 years either way.
/// What is computed from them stays a number.
pub const TIMES: RangeInclusive<f64> = -1e18..=1e18;

/// A datagram.
pub fn packet(cookie: &Cookie, kind: u8, number: u64, time: f64) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..32].copy_from_slice(cookie);
    bytes[32] = kind;
    bytes[33..41].copy_from_slice(&number.to_le_bytes());
    bytes[41..].copy_from_slice(&time.to_le_bytes());
    bytes
}

/// Kind, number and time of a datagram of this run.
pub fn read(cookie: &Cookie, bytes: &[u8]) -> Option<(u8, u64, f64)> {
    if bytes.len() != LENGTH || bytes[..32] != cookie[..] {
        return None;
    }
    let number = u64::from_le_bytes(bytes[33..41].try_into().ok()?);
    let time = f64::from_le_bytes(bytes[41..].try_into().ok()?);
    TIMES.contains(&time).then_some((bytes[32], number, time))
}

/// This host's clock, for turning the kernel's stamps into its time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Local {
    /// What is read.
    pub source: Source,
    /// Its scale.
    pub time: Timebase,
    /// What it is made wrong by, in a test.
    pub injected_error: Option<InjectedClockError>,
}

/// When something was, at the earliest and at the latest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct When {
    earliest: LocalNs,
    latest: LocalNs,
}

impl When {
    /// Narrowed by a stamp that was `age` nanoseconds old at `read`.
    fn narrowed(self, read: When, age: f64) -> When {
        let slack = age * SLEW + 1.0;
        // Both are true, so the truth is in both; where they exclude each other a clock was set.
        let earliest = LocalNs((read.earliest.0 - age - slack).max(self.earliest.0));
        let latest = LocalNs((read.latest.0 - age + slack).min(self.latest.0));
        if earliest <= latest { When { earliest, latest } } else { self }
    }
}

impl Local {
    fn now(&self) -> LocalNs {
        self.shown(self.time.local(self.source.read()))
    }

    /// What this clock shows at a time of the true one.
    pub fn shown(&self, at: LocalNs) -> LocalNs {
        LocalNs(at.0 + self.injected_error.map_or(0.0, |error| error.error_ns(at.0)))
    }

    /// A stamp as this clock would have taken it; one that was not taken stays so.
    pub fn stamp(&self, at: Ticks) -> Ticks {
        match self.injected_error {
            Some(error) if at.0 != 0 => {
                at + self.time.ticks_for(error.error_ns(self.time.local(at).0))
            }
            _ => at,
        }
    }

    /// The kernel's stamp in this host's time; `own` if it is missing or implausible.
    fn when(&self, stamp: Option<Ticks>, own: When) -> When {
        let Some(stamp) = stamp else { return own };
        let reading = |_| {
            let before = self.now();
            let realtime = KernelClock::REALTIME.now();
            let after = self.now();
            // Subtracted as whole numbers: nanoseconds since 1970 are exact to 256 as an f64.
            (after - before, before, (realtime - stamp).0 as f64, after)
        };
        let best = (0..READINGS).map(reading).min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, before, age, after)) = best else { return own };
        if !(0.0..OLDEST_NS).contains(&age) {
            return own;
        }
        own.narrowed(When { earliest: before, latest: after }, age)
    }
}

/// One end of exchanges of times: it asks, or it answers.
pub struct ExchangeEnd {
    socket: StampedSocket,
    local: Local,
    cookie: Cookie,
    /// Datagrams that it has sent.
    pub sent: u64,
}

impl ExchangeEnd {
    /// At this address (port 0: one is chosen).
    pub fn bind(address: SocketAddr, local: Local, cookie: Cookie) -> io::Result<ExchangeEnd> {
        Ok(ExchangeEnd { socket: StampedSocket::bind(address)?, local, cookie, sent: 0 })
    }

    /// Where it is bound.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.socket.local_addr()
    }

    /// Sends a datagram; when it left.
    fn send(&mut self, kind: u8, number: u64, time: LocalNs, to: SocketAddr) -> io::Result<When> {
        self.sent += 1;
        let earliest = self.local.now();
        let sent = self.socket.send(&packet(&self.cookie, kind, number, time.0), to)?;
        let own = When { earliest, latest: self.local.now() };
        Ok(self.local.when(self.socket.left(sent)?, own))
    }

    /// Answers what comes within this time from an address that may be answered. Datagrams of
    /// others are dropped.
    pub fn answer(
        &mut self,
        within: Duration,
        may_answer: impl Fn(IpAddr) -> bool,
    ) -> io::Result<()> {
        let earliest = self.local.now();
        let mut bytes = [0; LENGTH + 1];
        let Some((length, from, stamp)) = self.socket.receive(&mut bytes, within)? else {
            return Ok(());
        };
        let own = When { earliest, latest: self.local.now() };
        let Some((ASK, number, _)) = read(&self.cookie, &bytes[..length]) else { return Ok(()) };
        if !may_answer(from.ip()) {
            return Ok(());
        }
        let reached = self.local.when(stamp, own);
        let answered = self.send(ANSWER, number, reached.latest, from)?;
        self.sent += 1;
        let follow = packet(&self.cookie, FOLLOW, number, answered.earliest.0);
        self.socket.send(&follow, from).map(drop)
    }

    /// One exchange with the end at `other`; `None` where no answer came within this time.
    pub fn ask(&mut self, other: SocketAddr, within: Duration) -> io::Result<Option<Exchange>> {
        let asked = self.sent + 1;
        let left = self.send(ASK, asked, LocalNs(0.0), other)?;
        let (mut answer, mut follow) = (None, None);
        let begin = Instant::now();
        while answer.is_none() || follow.is_none() {
            let rest = within.saturating_sub(begin.elapsed());
            // A flood of other datagrams would otherwise never let it time out.
            if rest.is_zero() {
                return Ok(None);
            }
            let mut bytes = [0; LENGTH + 1];
            let Some((length, from, stamp)) = self.socket.receive(&mut bytes, rest)? else {
                return Ok(None);
            };
            let own = When { earliest: left.earliest, latest: self.local.now() };
            match read(&self.cookie, &bytes[..length]) {
                Some((_, number, _)) if number != asked || from != other => {}
                Some((ANSWER, _, at)) => answer = Some((at, self.local.when(stamp, own))),
                Some((FOLLOW, _, answered)) => follow = Some(answered),
                _ => {}
            }
        }
        let exchange = answer.zip(follow).map(|((reached, heard), answered)| Exchange {
            sent: left.earliest,
            reached: LocalNs(reached),
            answered: LocalNs(answered),
            heard: heard.latest,
        });
        // Times that no two clocks can have are not believed.
        Ok(exchange.filter(|exchange| exchange.round_trip_ns() >= 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::offset::Model;
    use super::super::{Calibration, anchors};
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicBool, Ordering};
    use wiregauge_test_support::bounded::Bound;

    /// This host's clock, and one that is ahead by 3 s and gains 40 ppm.
    fn two_clocks() -> (Local, Local) {
        let (source, _) = Source::choose();
        let anchors = anchors(source, Duration::from_millis(100), 11);
        let scale = Calibration::of(source, &anchors).unwrap();
        let here = Timebase { epoch: anchors[0].ticks, ns_per_tick: scale.ns_per_tick };
        let behind = (3e9 / here.ns_per_tick) as u64;
        let there = Timebase {
            epoch: Ticks(here.epoch.0 - behind),
            ns_per_tick: here.ns_per_tick * (1.0 + 40e-6),
        };
        let local = |time| Local { source, time, injected_error: None };
        (local(here), local(there))
    }

    #[test]
    fn two_ends_with_clocks_of_a_known_offset_find_it_within_the_bound() {
        let _bound = Bound::new();
        let (here, there) = two_clocks();
        let cookie = [9; 32];
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut answering = ExchangeEnd::bind(loopback, there, cookie).unwrap();
        let address = answering.address().unwrap();
        let over = AtomicBool::new(false);
        let exchanges = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    answering.answer(Duration::from_millis(20), |_| true).unwrap();
                }
            });
            let mut asking = ExchangeEnd::bind(loopback, here, cookie).unwrap();
            let exchanges: Vec<Exchange> = (0..300)
                .filter_map(|_| {
                    std::thread::sleep(Duration::from_millis(1));
                    asking.ask(address, Duration::from_millis(200)).unwrap()
                })
                .collect();
            over.store(true, Ordering::Relaxed);
            exchanges
        });
        assert!(exchanges.len() > 200, "{} came back", exchanges.len());
        let model = Model::fit(&exchanges).unwrap();
        for exchange in &exchanges {
            let at = exchange.sent;
            let truth = there.time.local(here.time.ticks_at(at)).0 - at.0;
            let offset = model.offset_at(at);
            let off = (offset.ns - truth).abs();
            assert!(off <= offset.bound_ns, "off by {off} ns, bound {} ns", offset.bound_ns);
        }
        let middle = model.offset_at(exchanges[150].sent);
        println!("bound {} ns, steps {}", middle.bound_ns, model.steps.len());
    }

    #[test]
    fn a_stamp_of_the_kernel_s_clock_is_turned_into_this_host_s_to_the_nanosecond() {
        let (here, _) = two_clocks();
        for _ in 0..2000 {
            let before = here.now();
            let stamp = KernelClock::REALTIME.now();
            let after = here.now();
            let own = When { earliest: LocalNs(before.0 - 1e6), latest: LocalNs(after.0 + 1e9) };
            let when = here.when(Some(stamp), own);
            // The stamp was taken between the two readings, so its bounds meet theirs.
            assert!(
                when.earliest <= after && when.latest >= before,
                "{when:?} {before:?} {after:?}"
            );
        }
    }

    #[test]
    fn a_stamp_narrows_what_is_known_and_never_widens_it() {
        let when = |earliest, latest| When { earliest: LocalNs(earliest), latest: LocalNs(latest) };
        // 1 ms old at 5 ms to 5.0001 ms: taken at 4 ms to 4.0001 ms, and 1 ns and the slew wider.
        let slack = 1e6 * SLEW + 1.0;
        let stamp = |own: When| own.narrowed(when(5e6, 5.0001e6), 1e6);
        assert_eq!(stamp(when(0.0, 9e6)), when(4e6 - slack, 4.0001e6 + slack));
        assert_eq!(stamp(when(4.00005e6, 9e6)), when(4.00005e6, 4.0001e6 + slack));
        assert_eq!(stamp(when(0.0, 4.00005e6)), when(4e6 - slack, 4.00005e6));
        let point = 4e6 - slack;
        assert_eq!(stamp(when(0.0, point)), when(point, point));
        // A clock was set: the stamp is not believed.
        assert_eq!(stamp(when(5e6, 9e6)), when(5e6, 9e6));
        assert_eq!(stamp(when(0.0, 3e6)), when(0.0, 3e6));
    }

    #[test]
    fn a_stamp_that_is_missing_or_implausible_changes_nothing() {
        let (here, _) = two_clocks();
        let now = here.now();
        let own = When { earliest: LocalNs(now.0 - 1e12), latest: LocalNs(now.0 + 1e12) };
        let read = KernelClock::REALTIME.now();
        let plausible = here.when(Some(read), own);
        assert!(plausible.latest.0 - plausible.earliest.0 < 1e12, "{plausible:?}");
        assert_eq!(here.when(None, own), own);
        // In an hour, and an hour ago.
        assert_eq!(here.when(Some(Ticks(read.0 + 3_600_000_000_000)), own), own);
        assert_eq!(here.when(Some(Ticks(read.0 - 3_600_000_000_000)), own), own);
    }

    #[test]
    fn an_injected_error_is_added_to_times_and_to_stamps_that_were_taken() {
        let error = "offset(7us)".parse().unwrap();
        let time = Timebase { epoch: Ticks(100), ns_per_tick: 0.5 };
        let source = Source::MonotonicRaw;
        let wrong = Local { source, time, injected_error: Some(error) };
        assert_eq!(wrong.shown(LocalNs(1000.0)), LocalNs(8000.0));
        assert_eq!(wrong.stamp(Ticks(300)), Ticks(300 + 14_000));
        assert_eq!(wrong.stamp(Ticks(0)), Ticks(0));
        let right = Local { injected_error: None, ..wrong };
        assert_eq!((right.shown(LocalNs(1.0)), right.stamp(Ticks(9))), (LocalNs(1.0), Ticks(9)));
    }

    #[test]
    fn what_is_not_of_this_run_is_not_read() {
        let _bound = Bound::new();
        let cookie = [1; 32];
        let bytes = packet(&cookie, ASK, 7, 1.5);
        assert_eq!(read(&cookie, &bytes), Some((ASK, 7, 1.5)));
        assert_eq!(read(&[2; 32], &bytes), None);
        assert_eq!(read(&cookie, &bytes[..48]), None);
        for wrong in [f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(read(&cookie, &packet(&cookie, ASK, 7, wrong)), None);
        }
    }

    #[test]
    fn an_exchange_takes_three_datagrams_which_both_ends_count() {
        let _bound = Bound::new();
        let (here, there) = two_clocks();
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut answering = ExchangeEnd::bind(loopback, there, [3; 32]).unwrap();
        let mut asking = ExchangeEnd::bind(loopback, here, [3; 32]).unwrap();
        let address = answering.address().unwrap();
        let long = Duration::from_secs(20);
        std::thread::scope(|scope| {
            let answered = scope.spawn(|| answering.answer(long, |_| true).unwrap());
            assert!(asking.ask(address, long).unwrap().is_some());
            answered.join().unwrap();
        });
        assert_eq!((asking.sent, answering.sent), (1, 2));
    }

    #[test]
    fn answers_from_other_peers_and_to_other_questions_are_ignored() {
        let _bound = Bound::new();
        let (here, _) = two_clocks();
        let cookie = [4; 32];
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut asking = ExchangeEnd::bind(loopback, here, cookie).unwrap();
        let to = asking.address().unwrap();
        let [other, stranger] = [(); 2].map(|()| std::net::UdpSocket::bind(loopback).unwrap());
        for (from, number) in [(&stranger, 1), (&other, 7)] {
            for kind in [ANSWER, FOLLOW] {
                from.send_to(&packet(&cookie, kind, number, 5.0), to).unwrap();
            }
        }
        let address = other.local_addr().unwrap();
        assert_eq!(asking.ask(address, Duration::from_millis(20)).unwrap(), None);
    }

    #[test]
    fn a_question_times_out_even_if_datagrams_are_waiting() {
        let _bound = Bound::new();
        let (here, _) = two_clocks();
        let cookie = [5; 32];
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        for (within, is_answered) in [(Duration::ZERO, false), (Duration::from_secs(20), true)] {
            let mut asking = ExchangeEnd::bind(loopback, here, cookie).unwrap();
            let other = std::net::UdpSocket::bind(loopback).unwrap();
            for kind in [ANSWER, FOLLOW] {
                other.send_to(&packet(&cookie, kind, 1, 5.0), asking.address().unwrap()).unwrap();
            }
            let answer = asking.ask(other.local_addr().unwrap(), within).unwrap();
            assert_eq!(answer.is_some(), is_answered);
        }
    }
}
