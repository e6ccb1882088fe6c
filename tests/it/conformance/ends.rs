//! Two ends of a transport in two threads of one process, with a bound on everything that waits.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use wiregauge::host::interrupt::{self, Interrupter};
use wiregauge::loops::payload;
use wiregauge::transport::{
    Blob, Endpoint, Events, Link, Posted, Role, Settings, Setup, Slot, Traffic, TransportKind, Wait,
};
use wiregauge::units::Span;

/// Two ends without progress for this long are stuck. A busy machine delays a thread far less.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same over a transport that may lose messages: whatever is missing by then is lost. Longer
/// than a busy machine keeps one of many threads from running.
const LOSS_PATIENCE: Duration = Duration::from_secs(15);
/// No attempt at a claim takes longer.
const LIMIT: Duration = Duration::from_secs(240);
/// Ends that do not return this long after they were interrupted never will.
const LAST_LIMIT: Duration = Duration::from_secs(30);
/// How often a claim is repeated if the transport lost a message: one that may lose messages does
/// so where others load the machine.
const ATTEMPTS: u32 = 10;
/// Between two interrupts of ends that are stuck in a system call.
const REPEAT: Duration = Duration::from_millis(5);
/// Between two looks at the progress of both ends.
const LOOK: Duration = Duration::from_millis(100);

/// Ends an attempt at a claim: the transport lost a message.
pub struct Lost;

/// Gives up an attempt. No hook runs: nothing has failed.
pub fn give_up() -> ! {
    resume_unwind(Box::new(Lost))
}

/// Checks a claim; repeats it where the transport may lose messages and lost one.
pub fn unless_lost(bench: Bench, attempt: impl Fn()) {
    for _ in 0..ATTEMPTS {
        match catch_unwind(AssertUnwindSafe(&attempt)) {
            Ok(()) => return,
            Err(panic) if bench.loses() && panic.is::<Lost>() => {
                eprintln!("{} lost a message; trying again", bench.kind);
            }
            Err(panic) => resume_unwind(panic),
        }
    }
    panic!("{} lost a message in each of {ATTEMPTS} attempts", bench.kind);
}

/// Passes on a panic of one of two threads; a loss explains all others.
pub fn rethrow(outcomes: [std::thread::Result<()>; 2]) {
    let panics: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    if panics.iter().any(|panic| panic.is::<Lost>()) {
        give_up();
    }
    if let Some(panic) = panics.into_iter().next() {
        resume_unwind(panic);
    }
}

/// Ends a loop without progress.
pub struct Patience {
    loses: bool,
    progress: u64,
    since: Instant,
}

impl Patience {
    pub fn new(bench: Bench) -> Patience {
        Patience { loses: bench.loses(), progress: 0, since: Instant::now() }
    }

    fn limit(&self) -> Duration {
        if self.loses { LOSS_PATIENCE } else { PATIENCE }
    }

    /// Whether this sum of all that has happened has not grown for too long.
    fn is_over(&mut self, progress: u64) -> bool {
        if self.progress != progress {
            (self.progress, self.since) = (progress, Instant::now());
        }
        self.since.elapsed() > self.limit()
    }

    /// Fails or gives up where that is so.
    pub fn check(&mut self, progress: u64) {
        if self.is_over(progress) {
            if self.loses {
                give_up();
            }
            panic!("stuck: no progress for {PATIENCE:?} after {progress} events");
        }
    }
}

/// A barrier for two threads that is not waited at for ever.
#[derive(Default)]
pub struct Meeting(AtomicU32);

impl Meeting {
    pub fn wait(&self) {
        let all = (self.0.fetch_add(1, Ordering::AcqRel) + 1).next_multiple_of(2);
        let begin = Instant::now();
        while self.0.load(Ordering::Acquire) < all {
            assert!(begin.elapsed() < PATIENCE, "the other end is gone or stuck");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// One transport in one wait mode.
#[derive(Clone, Copy)]
pub struct Bench {
    pub kind: TransportKind,
    pub wait: Wait,
}

impl Bench {
    pub fn setup(&self, role: Role, traffic: Traffic, size: usize, window: u32) -> Setup {
        Setup {
            window,
            loss_after: Span(20_000_000),
            cookie: [0xc7; 32],
            seed: 1,
            // Both ends are threads of this process.
            threads: 2,
            ..Setup::new(role, traffic, self.wait, size)
        }
    }

    /// The sizes of the suite that this transport allows: around what a cell, a cache line or a
    /// sequence number takes, and the largest datagram of UDP.
    pub fn sizes(&self) -> Vec<usize> {
        let largest = self.kind.descriptor().largest as usize;
        let sizes = [1, 7, 8, 9, 55, 56, 57, 63, 64, 65, 1000, 4096, 65507];
        sizes.into_iter().filter(|size| *size <= largest).collect()
    }

    pub fn loses(&self) -> bool {
        self.kind.loses(&Settings::default())
    }

    /// How many messages a sender may be ahead of the receiver: no bound, but on a transport that
    /// loses what its receiver has no room for, so little that there always is room.
    pub fn credit(&self, size: usize) -> u64 {
        match self.loses() {
            false => u64::MAX,
            true => (64 << 10) / (size as u64 + 2048) + 1,
        }
    }
}

/// What both ends of a claim share.
#[derive(Default)]
pub struct Common {
    /// Messages that each role has received.
    received: [AtomicU64; 2],
    /// Sums of what each has posted, completed and received.
    progress: [AtomicU64; 2],
    /// Both are stuck, or one has failed.
    overdue: AtomicBool,
    /// Who failed first.
    failed: OnceLock<Role>,
    over: AtomicBool,
}

/// One end in one thread.
pub struct End<'a> {
    pub endpoint: Box<dyn Endpoint>,
    pub events: Events,
    /// Posts that were accepted, and those that have completed.
    pub accepted: u64,
    pub completed: u64,
    /// Messages received.
    pub received: u64,
    pub size: usize,
    /// Whether the other end answers each message.
    pub is_answered: bool,
    credit: u64,
    role: Role,
    sleeps: bool,
    loses: bool,
    common: &'a Common,
    to_other: Sender<Blob>,
    from_other: Receiver<Blob>,
}

fn number(role: Role) -> usize {
    match role {
        Role::Client | Role::Node => 0,
        Role::Server => 1,
    }
}

impl End<'_> {
    /// One attempt to learn something: a poll or, where the mode sleeps, a wait.
    pub fn next(&mut self) {
        if self.sleeps {
            self.endpoint.wait(&mut self.events);
        } else {
            self.endpoint.poll(&mut self.events);
        }
        self.account();
        self.check_time();
        if !self.events.any() {
            std::thread::yield_now();
        }
    }

    pub fn poll(&mut self) {
        self.endpoint.poll(&mut self.events);
        self.account();
        self.check_time();
    }

    fn account(&mut self) {
        self.completed += u64::from(self.events.completed);
        assert!(self.completed <= self.accepted, "more posts completed than were accepted");
        let arrivals = self.events.arrivals();
        for (index, arrival) in arrivals.iter().enumerate() {
            assert!(arrival.slot.has_arrived());
            assert!(arrivals[..index].iter().all(|other| other.slot != arrival.slot));
        }
        self.received += arrivals.len() as u64;
        let (own, progress) = (number(self.role), self.accepted + self.completed + self.received);
        self.common.received[own].store(self.received, Ordering::Release);
        self.common.progress[own].store(progress, Ordering::Relaxed);
    }

    /// Fails or gives up where both ends are stuck.
    pub fn check_time(&self) {
        if !self.common.overdue.load(Ordering::Relaxed) {
            return;
        }
        if self.loses {
            give_up();
        }
        panic!(
            "stuck: {} messages posted, {} completed, {} received",
            self.accepted, self.completed, self.received
        );
    }

    /// Whether another message may be written and posted: its slot is free, and the other end has
    /// room where the transport would lose it.
    pub fn may_post(&self) -> bool {
        let others = self.common.received[1 - number(self.role)].load(Ordering::Acquire);
        // What is answered must find room on its way back too.
        let other = if self.is_answered { self.received } else { others };
        self.accepted - self.completed < u64::from(self.endpoint.slots())
            && self.accepted.saturating_sub(other) < self.credit
    }

    /// Whether it waits for the other end to read, which wakes no sleeper.
    pub fn is_held_back(&self) -> bool {
        self.credit != u64::MAX && self.completed == self.accepted
    }

    /// From now on it may lose messages.
    pub fn give_credit_without_end(&mut self) {
        self.credit = u64::MAX;
    }

    /// Posts message number `accepted` from the slot whose turn it is, where it is taken.
    pub fn post_next(&mut self) -> bool {
        let sequence = self.accepted;
        let slot = Slot::sending((sequence % u64::from(self.endpoint.slots())) as u32);
        let size = self.size;
        let memory = self.endpoint.payload(slot);
        assert!(memory.len() >= size, "a slot holds less than a message");
        payload::fill(&mut memory[..size], sequence);
        match self.endpoint.post(slot, size) {
            Posted::Accepted => {
                self.accepted += 1;
                true
            }
            Posted::Full => false,
        }
    }

    /// Posts as much as may be posted, at most up to message `total`; whether it posted anything.
    pub fn post_up_to(&mut self, total: u64) -> bool {
        let before = self.accepted;
        while self.accepted < total && self.may_post() && self.post_next() {}
        self.endpoint.flush();
        self.accepted > before
    }

    /// Sends messages up to number `total` and sees all posts complete; what arrives is dropped.
    pub fn send_up_to(&mut self, total: u64) {
        while self.accepted < total || self.completed < self.accepted {
            let posted = self.post_up_to(total);
            // Held back for want of credit there is nothing that would wake a sleeper.
            let held_back = self.accepted < total && self.completed == self.accepted;
            if posted || held_back {
                self.poll();
            } else {
                self.next();
            }
        }
    }

    /// Checks that what the last poll brought is messages `from..`, whole and as they were sent;
    /// the number after the last.
    pub fn verify_arrivals(&mut self, from: u64) -> u64 {
        let mut expected = from;
        for index in 0..self.events.arrivals().len() {
            let arrival = self.events.arrivals()[index];
            assert_eq!(arrival.length as usize, self.size, "of message {expected}");
            let message = &self.endpoint.payload(arrival.slot)[..self.size];
            let sequence = payload::sequence(message, expected);
            assert!(payload::verify(message, sequence), "message {expected} is not as it was sent");
            if self.loses && sequence > expected {
                give_up();
            }
            assert_eq!(sequence, expected, "out of order");
            expected += 1;
        }
        expected
    }

    /// Receives and verifies messages `from..total`.
    ///
    /// Order is asked of all: loopback keeps it even where a network would not.
    pub fn receive_up_to(&mut self, from: u64, total: u64) {
        let mut expected = from;
        while expected < total {
            self.next();
            expected = self.verify_arrivals(expected);
            assert!(
                self.events.link == Link::Up || expected == total,
                "{:?} after {expected} of {total} messages",
                self.events.link
            );
        }
        assert_eq!(expected, total, "more messages than were sent");
    }

    /// Nothing is on the way any more: further polls bring neither arrivals nor completions.
    pub fn is_quiet(&mut self) {
        for _ in 0..16 {
            self.poll();
            assert!(self.events.arrivals().is_empty(), "a message came twice");
            assert_eq!(self.events.completed, 0, "a post completed twice");
        }
        assert_eq!(self.completed, self.accepted, "a post did not complete");
    }

    /// Waits until the other end says the same.
    pub fn meet(&self) {
        let _ = self.to_other.send(Blob::default());
        while let Err(none) = self.from_other.recv_timeout(LOOK) {
            assert_eq!(none, RecvTimeoutError::Timeout, "the other end is gone");
            self.check_time();
        }
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.common.failed.set(self.role);
            self.common.overdue.store(true, Ordering::Relaxed);
        }
    }
}

fn end<'a>(
    kind: TransportKind,
    setup: &Setup,
    credit: u64,
    common: &'a Common,
    to_other: Sender<Blob>,
    from_other: Receiver<Blob>,
) -> End<'a> {
    let opening = kind.open(setup).unwrap();
    to_other.send(opening.address.clone()).unwrap();
    let address = from_other.recv_timeout(PATIENCE).expect("the other end is gone or stuck");
    let end = End {
        endpoint: opening.connect(&address).unwrap().endpoint,
        events: Events::default(),
        accepted: 0,
        completed: 0,
        received: 0,
        size: setup.size,
        is_answered: setup.role == Role::Client && matches!(setup.traffic, Traffic::Echo { .. }),
        credit,
        role: setup.role,
        sleeps: setup.wait.sleeps(),
        loses: credit != u64::MAX,
        common,
        to_other,
        from_other,
    };
    // As the controller does: nobody sends before both are connected.
    end.meet();
    end
}

/// Runs both ends, each in its own thread. What is stuck is interrupted and fails.
pub fn both_ends(
    bench: Bench,
    traffic: Traffic,
    (size, window): (usize, u32),
    client: impl Fn(&mut End<'_>) + Sync,
    server: impl Fn(&mut End<'_>) + Sync,
) {
    let carried = bench.kind.descriptor().traffic;
    if !carried.iter().any(|known| known.same_kind(traffic)) {
        return eprintln!("not asked of {}: it does not carry {traffic:?}", bench.kind);
    }
    install_once();
    let setup = |role| bench.setup(role, traffic, size, window);
    unless_lost(bench, || attempt(bench, &setup, &client, &server));
}

fn attempt(
    bench: Bench,
    setup: &(impl Fn(Role) -> Setup + Sync),
    client: &(impl Fn(&mut End<'_>) + Sync),
    server: &(impl Fn(&mut End<'_>) + Sync),
) {
    let common = &Common::default();
    let credit = bench.credit(setup(Role::Client).size);
    let (to_server, from_client) = channel();
    let (to_client, from_server) = channel();
    std::thread::scope(|scope| {
        let (tell, threads) = channel();
        let tell_too = tell.clone();
        let client = scope.spawn(move || {
            let _ = tell.send(Interrupter::this_thread());
            client(&mut end(
                bench.kind,
                &setup(Role::Client),
                credit,
                common,
                to_server,
                from_server,
            ));
        });
        let server = scope.spawn(move || {
            let _ = tell_too.send(Interrupter::this_thread());
            server(&mut end(
                bench.kind,
                &setup(Role::Server),
                credit,
                common,
                to_client,
                from_client,
            ));
        });
        let watchdog = scope.spawn(move || watch(bench, common, &threads));
        let mut outcomes = [client.join(), server.join()];
        common.over.store(true, Ordering::Relaxed);
        watchdog.thread().unpark();
        if common.failed.get() == Some(&Role::Server) {
            outcomes.reverse();
        }
        rethrow(outcomes);
    });
}

/// Ends what is stuck: nothing disturbs the ends before, so that a wake-up that is missed shows.
fn watch(bench: Bench, common: &Common, threads: &Receiver<Interrupter>) {
    let threads: Vec<Interrupter> = threads.iter().take(2).collect();
    let (begin, mut patience, mut stuck) = (Instant::now(), Patience::new(bench), None);
    while !common.over.load(Ordering::Relaxed) {
        let progress = common.progress.iter().map(|end| end.load(Ordering::Relaxed)).sum();
        if patience.is_over(progress) || begin.elapsed() > LIMIT {
            common.overdue.store(true, Ordering::Relaxed);
        }
        if !common.overdue.load(Ordering::Relaxed) {
            std::thread::park_timeout(LOOK);
            continue;
        }
        threads.iter().for_each(Interrupter::interrupt);
        if stuck.get_or_insert_with(Instant::now).elapsed() > LAST_LIMIT {
            // A thread cannot be ended: without this the program would hang for ever.
            eprintln!("an end over {} returns from no call: the tests are aborted", bench.kind);
            std::process::abort();
        }
        std::thread::park_timeout(REPEAT);
    }
}

pub fn install_once() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| interrupt::install().unwrap());
}
