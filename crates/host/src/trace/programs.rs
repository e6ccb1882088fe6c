//! The programs of `stamps.bpf.c`: where in the kernel each hangs, how it is loaded, attached and
//! detached.
//!
//! A program hangs at a trace point. Where the kernel lacks that, one at a function that is passed
//! at the same place stands in: 6.1 has neither `sk_data_ready` nor `sock_recv_length`.

use super::{CopiedAt, Kind, TraceError};
use aya::programs::fentry::FEntryLinkId;
use aya::programs::fexit::FExitLinkId;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, FEntry, FExit, ProgramError};
use aya::{Btf, Ebpf};

/// Where a program hangs, by the kernel's name of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hook {
    TracePoint(&'static str),
    /// The begin of a function.
    Entry(&'static str),
    /// The end of a function.
    Return(&'static str),
}

/// A hook with a program attached.
enum Link {
    TracePoint(BtfTracePointLinkId),
    Entry(FEntryLinkId),
    Return(FExitLinkId),
}

/// A loaded program.
pub(super) struct Program {
    pub(super) kind: Kind,
    /// What a stage that ends here shows.
    pub(super) name: &'static str,
    function: &'static str,
    hook: Hook,
    link: Option<Link>,
}

/// All functions of the object at trace points; for [`Kind::Copied`] that of [`CopiedAt`].
const FUNCTIONS: [(&str, Kind); 27] = [
    ("wg_send", Kind::Send),
    ("wg_queue", Kind::Queue),
    ("wg_xmit", Kind::Xmit),
    ("wg_netif_rx", Kind::NetifRx),
    ("wg_gro", Kind::Gro),
    ("wg_receive", Kind::Receive),
    ("wg_tcp_probe", Kind::TcpProbe),
    ("wg_ready", Kind::Ready),
    ("wg_waking", Kind::Waking),
    ("wg_switch", Kind::Switch),
    ("wg_tcp_copied", Kind::Copied),
    ("wg_irq_entry", Kind::IrqEntry),
    ("wg_irq_exit", Kind::IrqExit),
    ("wg_timer_entry", Kind::TimerEntry),
    ("wg_timer_exit", Kind::TimerExit),
    ("wg_softirq_entry", Kind::SoftirqEntry),
    ("wg_softirq_exit", Kind::SoftirqExit),
    ("wg_migrate", Kind::Migrate),
    ("wg_fault", Kind::Fault),
    ("wg_retransmit", Kind::Retransmit),
    ("wg_sys_enter", Kind::SysEnter),
    ("wg_sys_exit", Kind::SysExit),
    ("wg_qdisc", Kind::Qdisc),
    ("wg_dropped", Kind::Dropped),
    ("wg_napi", Kind::Napi),
    ("wg_frequency", Kind::Frequency),
    ("wg_refused", Kind::Refused),
];

fn of_copies(at: CopiedAt) -> &'static str {
    match at {
        CopiedAt::Stream => "wg_tcp_copied",
        CopiedAt::Local => "wg_copied",
        CopiedAt::Datagram => "wg_received",
    }
}

/// Without which nothing can be told apart: whose a thread is. It stamps nothing.
const FORK: (&str, &str) = ("wg_fork", "sched_process_fork");

/// What stands in for a trace point: its function of the object, where that hangs, and what a stage
/// that ends there shows. All of a trace point's that the kernel has are used.
const STAND_INS: [(&str, &str, Hook, &str); 6] = [
    (
        "tcp_sendmsg_locked",
        "wg_send_entry",
        Hook::Entry("tcp_sendmsg_locked"),
        "begin of tcp_sendmsg_locked",
    ),
    (
        "sk_data_ready",
        "wg_ready_entry",
        Hook::Entry("sock_def_readable"),
        "begin of sock_def_readable",
    ),
    (
        "sock_recv_length",
        "wg_received_exit",
        Hook::Return("inet_recvmsg"),
        "return of inet_recvmsg",
    ),
    (
        "sock_recv_length",
        "wg_received_exit6",
        Hook::Return("inet6_recvmsg"),
        "return of inet_recvmsg",
    ),
    (
        "sock_send_length",
        "wg_refused_exit",
        Hook::Return("unix_stream_sendmsg"),
        "return of unix_stream_sendmsg",
    ),
    (
        "sock_send_length",
        "wg_refused_exit_dgram",
        Hook::Return("unix_dgram_sendmsg"),
        "return of unix_dgram_sendmsg",
    ),
];

/// Loads the programs that are wanted; with what this kernel lacks, or refused. Stand-ins come in
/// where a trace point is missing, or for all that have one where they are `preferred`.
pub(super) fn load(
    ebpf: &mut Ebpf,
    btf: &Btf,
    wanted: &[Kind],
    copied: CopiedAt,
    preferred: bool,
) -> Result<(Vec<Program>, Vec<String>), TraceError> {
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    for (function, kind) in FUNCTIONS.into_iter().filter(|(_, kind)| wanted.contains(kind)) {
        let (function, point) = match kind {
            Kind::Copied => (of_copies(copied), copied.name()),
            _ => (function, kind.name()),
        };
        let stand_ins = STAND_INS.iter().filter(|(of, ..)| *of == point);
        let at_point = Program::new(kind, point, function, Hook::TracePoint(point));
        let loaded = match preferred && stand_ins.clone().next().is_some() {
            true => Err(String::new()),
            false => load_one(ebpf, &at_point, btf),
        };
        let Err(why) = loaded else {
            programs.push(at_point);
            continue;
        };
        let (before, mut whys) = (programs.len(), why);
        for (_, function, hook, name) in stand_ins {
            let program = Program::new(kind, name, function, *hook);
            match load_one(ebpf, &program, btf) {
                Ok(()) => programs.push(program),
                Err(why) => whys = why,
            }
        }
        if programs.len() == before {
            missing.push(format!("{point}{whys}"));
        }
    }
    // Its kind stands for no stamp.
    let fork = Program::new(Kind::Switch, FORK.1, FORK.0, Hook::TracePoint(FORK.1));
    load_one(ebpf, &fork, btf).map_err(|why| TraceError::NotAllowed(why.trim().to_owned()))?;
    programs.push(fork);
    Ok((programs, missing))
}

impl Program {
    fn new(kind: Kind, name: &'static str, function: &'static str, hook: Hook) -> Program {
        Program { kind, name, function, hook, link: None }
    }

    /// Whether it writes stamps.
    pub(super) fn stamps(&self) -> bool {
        self.function != FORK.0
    }

    /// Attaches it, where it is not.
    pub(super) fn attach(&mut self, ebpf: &mut Ebpf) -> Result<(), TraceError> {
        if self.link.is_none() {
            let refused = |error: ProgramError| TraceError::NotAllowed(whole(&error));
            let link = match self.hook {
                Hook::TracePoint(_) => {
                    self.in_kernel::<BtfTracePoint>(ebpf)?.attach().map(Link::TracePoint)
                }
                Hook::Entry(_) => self.in_kernel::<FEntry>(ebpf)?.attach().map(Link::Entry),
                Hook::Return(_) => self.in_kernel::<FExit>(ebpf)?.attach().map(Link::Return),
            };
            self.link = Some(link.map_err(refused)?);
        }
        Ok(())
    }

    /// Detaches it; whether it was attached.
    pub(super) fn detach(&mut self, ebpf: &mut Ebpf) -> Result<bool, TraceError> {
        let Some(link) = self.link.take() else { return Ok(false) };
        let detached = match link {
            Link::TracePoint(link) => self.in_kernel::<BtfTracePoint>(ebpf)?.detach(link),
            Link::Entry(link) => self.in_kernel::<FEntry>(ebpf)?.detach(link),
            Link::Return(link) => self.in_kernel::<FExit>(ebpf)?.detach(link),
        };
        detached.map(|()| true).map_err(|error| TraceError::NotAllowed(whole(&error)))
    }

    /// It in the object.
    fn in_kernel<'a, P>(&self, ebpf: &'a mut Ebpf) -> Result<&'a mut P, TraceError>
    where
        &'a mut P: TryFrom<&'a mut aya::programs::Program>,
    {
        let lacks = || TraceError::NotSupported(format!("the object lacks {}", self.function));
        ebpf.program_mut(self.function).and_then(|found| found.try_into().ok()).ok_or_else(lacks)
    }
}

/// Loads a program. Where that fails, why, as it follows the trace point's name: nothing where the
/// kernel lacks it.
fn load_one(ebpf: &mut Ebpf, program: &Program, btf: &Btf) -> Result<(), String> {
    let absent = |error: TraceError| format!(" ({error})");
    let loaded = match program.hook {
        Hook::TracePoint(name) => {
            program.in_kernel::<BtfTracePoint>(ebpf).map_err(absent)?.load(name, btf)
        }
        Hook::Entry(name) => program.in_kernel::<FEntry>(ebpf).map_err(absent)?.load(name, btf),
        Hook::Return(name) => program.in_kernel::<FExit>(ebpf).map_err(absent)?.load(name, btf),
    };
    match loaded {
        Ok(()) => Ok(()),
        Err(ProgramError::Btf(_)) => Err(String::new()),
        Err(error) => Err(format!(" (refused: {})", whole(&error))),
    }
}

/// An error with what caused it; of a verifier's log the first line and what it ends with.
pub(super) fn whole(error: &dyn std::error::Error) -> String {
    let mut sentence = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_sentence = next.to_string();
        if !sentence.contains(&next_sentence) {
            sentence += &format!(": {next_sentence}");
        }
        cause = next.source();
    }
    let mut lines = sentence.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or_default().to_owned();
    let counts = ["processed", "stack depth", "verification time"];
    let refusal = lines.rev().find(|line| !counts.iter().any(|word| line.starts_with(word)));
    refusal.map_or(first.clone(), |last| format!("{first} ... {}", last.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stand_in_is_for_a_trace_point_that_a_program_hangs_at() {
        let copied = CopiedAt::ALL.iter().map(|at| at.name());
        let points: Vec<&str> =
            FUNCTIONS.iter().map(|(_, kind)| kind.name()).chain(copied).collect();
        for (point, ..) in STAND_INS {
            assert!(points.contains(&point), "{point}");
        }
    }
}
