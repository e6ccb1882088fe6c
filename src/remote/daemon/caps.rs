//! What a standing agent allows: each frame of a driver is held against it before the process that
//! plays the role sees it. Pure.

use crate::control::frame::FrameError;
use crate::control::protocol::*;
use crate::loops::role::rpc_window;
use crate::plan::load::MOST_BUFFERS;
use crate::plan::request::{MOST_COUNT, MOST_THREADS, MOST_WINDOW};
use crate::plan::{Case, MOST_BURST, Pattern, Schedule};
use crate::sample::arena::Row;
use crate::transport::{Role, TransportKind};
use crate::units::{Bytes, MessageRate, Span};
use std::time::Duration;

/// How long a session may say nothing while no round runs in it.
const IDLE: Duration = Duration::from_secs(60);
/// What a round may take beside its loop: the transport's connection, its last samples.
const BESIDE: Duration = Duration::from_secs(30);
/// Rows of one round beyond its count: warm-up, and one more.
const MOST_ROWS: u64 = 2 * MOST_COUNT;

/// The limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// The longest round.
    pub longest_run: Span,
    /// The highest rate of messages; `None`: as fast as they go.
    pub highest_rate: Option<MessageRate>,
    /// The most memory of a round: samples and payloads.
    pub most_memory: Bytes,
    /// The ports of data connections, the last one included; `None`: the kernel chooses.
    pub ports: Option<(u16, u16)>,
    /// The transports.
    pub transports: Vec<TransportKind>,
}

impl Default for Caps {
    fn default() -> Caps {
        let reaching = TransportKind::ALL.iter().filter(|one| one.descriptor().between_hosts);
        Caps {
            longest_run: Span(3_600_000_000_000),
            highest_rate: None,
            most_memory: Bytes(2 << 30),
            ports: None,
            transports: reaching.copied().collect(),
        }
    }
}

impl std::fmt::Display for Caps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rounds of at most {}", self.longest_run)?;
        match self.highest_rate {
            Some(rate) => write!(f, ", at most {rate}")?,
            None => write!(f, ", any rate")?,
        }
        write!(f, ", memory of at most {}", self.most_memory)?;
        match self.ports {
            Some((first, last)) => write!(f, ", ports {first}-{last}")?,
            None => write!(f, ", any port")?,
        }
        write!(f, ", transports {}", names(&self.transports))
    }
}

fn names(transports: &[TransportKind]) -> String {
    transports.iter().map(|one| one.name()).collect::<Vec<_>>().join(",")
}

impl Caps {
    /// Whether a round may be played; else a sentence.
    fn check(&self, asked: &Assignment) -> Result<(), String> {
        let case = &asked.case;
        // A path is the driver's own memory, and means nothing here but danger.
        let Some(remote) = asked.remote.as_ref().filter(|_| asked.server_arena.is_none()) else {
            return Err("a standing agent serves drivers of other hosts, with memory of its own"
                .to_string());
        };
        self.check_transport(case.transport)?;
        let largest = case.transport.descriptor().largest;
        let within = |most: u64, value: u64| (1..=most).contains(&value);
        if !within(largest, case.size.0)
            || !within(MOST_BURST as u64, case.burst.into())
            || !within(MOST_WINDOW.into(), case.window.into())
            || remote.rows > MOST_ROWS
            || !within(MOST_THREADS.into(), case.threads.into())
            || asked.slots.len() != case.threads as usize
        {
            return Err("no case that wiregauge makes is so large".into());
        }
        let longest = self.longest_run;
        if let Some(length) = length(case).filter(|length| *length > longest.0 as f64) {
            return Err(format!(
                "this agent allows rounds of at most {longest} (--longest-run), and this one is \
                 of {}",
                Span(length as u64)
            ));
        }
        self.check_rate(case)?;
        let needs = memory(case, remote.rows, asked.floor);
        if needs > self.most_memory.0 {
            return Err(format!(
                "this agent allows {} of memory (--most-memory), and this round needs {}",
                self.most_memory,
                Bytes(needs)
            ));
        }
        Ok(())
    }

    fn check_transport(&self, transport: TransportKind) -> Result<(), String> {
        if self.transports.contains(&transport) {
            return Ok(());
        }
        Err(format!(
            "this agent does not allow {transport}; allowed are {} (--transports)",
            names(&self.transports)
        ))
    }

    fn check_rate(&self, case: &Case) -> Result<(), String> {
        let Some(highest) = self.highest_rate else { return Ok(()) };
        match rate(case).map(|rate| rate * f64::from(case.threads)) {
            Some(rate) if rate <= highest.0 => Ok(()),
            Some(rate) => Err(format!(
                "this agent allows at most {highest} (--highest-rate), and this round is of {}",
                MessageRate(rate)
            )),
            None => Err(format!(
                "this agent allows at most {highest} (--highest-rate), and this round sends as \
                 fast as it can; pace it with --rate or --pause"
            )),
        }
    }

    /// What is said of a host: what is not allowed there does not work there.
    pub fn narrow(&self, probe: &mut HostProbe, asked: &[TransportKind]) {
        let known: Vec<TransportKind> = probe.unavailable.iter().map(|(one, _)| *one).collect();
        for transport in asked.iter().filter(|one| !known.contains(one)) {
            if let Err(sentence) = self.check_transport(*transport) {
                probe.unavailable.push((*transport, sentence));
            }
        }
    }
}

/// Messages per second, where the case bounds them: of bursts while they last.
fn rate(case: &Case) -> Option<f64> {
    match case.schedule {
        Schedule::Periodic { rate } | Schedule::Poisson { rate } | Schedule::Trace { rate } => {
            Some(rate.0)
        }
        Schedule::OnOff { rate, on, off } => Some(rate.0 * (on.0 + off.0) as f64 / on.0 as f64),
        Schedule::ClosedLoop if case.pause.0 > 0 => {
            Some(f64::from(case.burst) * 1e9 / case.pause.0 as f64)
        }
        Schedule::ClosedLoop => None,
    }
}

/// Nanoseconds that the loop takes at least, where that is known before.
fn length(case: &Case) -> Option<f64> {
    let by_time = case.bound.time.map(|time| time.0 as f64);
    let messages = case.bound.count.map(|count| count.saturating_add(case.warmup) as f64);
    let mean = case.schedule.rate().map_or_else(|| rate(case), |mean| Some(mean.0));
    let by_count = messages.zip(mean).map(|(messages, rate)| messages / rate * 1e9);
    match (by_time, by_count) {
        (Some(time), Some(count)) => Some(time.min(count)),
        (time, count) => time.or(count),
    }
}

/// Bytes of an index for each object, about: key and place in a table that is at least half full.
const INDEX_BYTES: u64 = 34;

/// Bytes that a connection of `rpc` receives at once.
const RECEIVED: u64 = 128 << 10;

/// Bytes for samples, payloads both ways, and the instrument's own round trips, of all threads.
fn memory(case: &Case, rows: u64, floor: u32) -> u64 {
    let row = size_of::<Row>() as u64;
    let slots = match case.pattern {
        Pattern::Bandwidth => case.window.max(case.burst),
        Pattern::Latency | Pattern::Oneway => case.burst,
        Pattern::Load if case.rpc.is_some() => rpc_window(case),
        Pattern::Load => MOST_BUFFERS,
    };
    // The server's objects, with the index that finds them.
    let object = case.load.object_size.0.saturating_add(INDEX_BYTES);
    let table = match case.pattern {
        Pattern::Load if case.rpc.is_none() => case.load.objects.saturating_mul(object),
        _ => 0,
    };
    let slots = u64::from(slots).saturating_mul(2);
    // Of `rpc` each connection has its own, and room for two messages that arrive.
    let lanes = u64::from(case.lanes_of(Role::Client));
    let (slots, room) = match case.rpc {
        Some(_) => (slots.saturating_add(2), RECEIVED),
        None => (slots, 0),
    };
    let each = case.size.0.saturating_mul(slots);
    rows.saturating_add(floor.into())
        .saturating_mul(row)
        .saturating_add(each.saturating_add(room).saturating_mul(lanes))
        .saturating_add(table)
        .saturating_mul(case.most_threads().into())
}

/// Frames of one session: a round has five and one for each thread; more would only fill memory.
const MOST_FRAMES: u32 = 32 + MOST_THREADS;

/// Where a session stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Stage {
    /// Nobody has spoken yet.
    #[default]
    Silent,
    /// It was greeted, or a round is being prepared.
    Preparing,
    /// A round runs.
    Running,
    /// Exchanges of times are answered.
    KeepingTime,
}

/// One session as its driver's frames tell it.
#[derive(Debug)]
pub struct Inspector {
    caps: Caps,
    stage: Stage,
    frames: u32,
    /// What the session is for, in a few words.
    pub what: String,
    /// The transports that a look was about.
    pub looked: Vec<TransportKind>,
}

impl Inspector {
    /// Of a new session.
    pub fn new(caps: Caps) -> Inspector {
        let what = "nothing".into();
        Inspector { caps, stage: Stage::Silent, frames: 0, what, looked: Vec::new() }
    }

    /// Whether a frame may pass; else what the driver is told.
    pub fn admit(&mut self, body: &[u8]) -> Result<(), String> {
        self.frames += 1;
        if self.frames > MOST_FRAMES {
            return Err(format!("no session of wiregauge has more than {MOST_FRAMES} frames"));
        }
        let said: ToAgent = match postcard::from_bytes(body) {
            Ok(said) => said,
            // The first may be of another version, which the process behind tells best.
            Err(_) if self.stage == Stage::Silent => {
                self.stage = Stage::Preparing;
                return Ok(());
            }
            Err(error) => return Err(FrameError::Foreign(error).to_string()),
        };
        let stage = match said {
            ToAgent::Open(assignment) => {
                self.what = format!("{} ({})", assignment.case.label(), assignment.role.name());
                self.caps.check(&assignment)?;
                Stage::Preparing
            }
            ToAgent::Probe(request) => {
                self.what = "look".into();
                self.looked = request.transports;
                Stage::Preparing
            }
            ToAgent::KeepTime(_) => {
                self.what = "clocks".into();
                Stage::KeepingTime
            }
            ToAgent::Start(_) => Stage::Running,
            ToAgent::Hello { .. }
            | ToAgent::Connect(_)
            | ToAgent::Expect { .. }
            | ToAgent::Stop => Stage::Preparing,
        };
        // A loop that runs has its end set once: who says start again gains no time. And who keeps
        // time does so until the driver leaves.
        if !matches!(self.stage, Stage::Running | Stage::KeepingTime) {
            self.stage = stage;
        }
        Ok(())
    }

    /// How long from the last change of its stage the next frame may take; `None`: no limit.
    pub fn patience(&self) -> Option<Duration> {
        match self.stage {
            Stage::Silent | Stage::Preparing => Some(IDLE),
            Stage::Running => Some(self.caps.longest_run.duration().saturating_add(BESIDE)),
            Stage::KeepingTime => None,
        }
    }

    /// Where it stands.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Why it was ended when its patience was over.
    pub fn overdue(&self) -> String {
        match self.stage {
            Stage::Running => format!(
                "this agent allows rounds of at most {} (--longest-run), and this one was ended",
                self.caps.longest_run
            ),
            _ => format!("nothing was asked for {} s", IDLE.as_secs()),
        }
    }
}

#[cfg(test)]
mod tests;
