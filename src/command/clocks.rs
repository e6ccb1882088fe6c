//! `clocks`: how far another host's clock is from this one's, over a time.

use super::hosts::{self, ProbeRequest};
use super::{CommandError, Exit, measure, process};
use crate::cli::Output;
use crate::clock::Source;
use crate::pattern::registry;
use crate::plan::pairs::Node;
use crate::plan::{HostSpec, Pairs, Place, Plan, Rounds};
use crate::remote::host::RemoteHost;
use crate::run::{RunContext, compared};
use crate::transport::{Interfaces, TransportKind};
use crate::units::{Bytes, InjectedClockError, Span};

/// What the record and the page take at most: 200 points a host.
const NEED: Bytes = Bytes(1 << 20);

/// What is compared, and how.
pub struct Clocks {
    /// The other hosts.
    pub to: Vec<HostSpec>,
    /// How long.
    pub time: Span,
    /// Whose addresses are used.
    pub interface: Option<Interfaces>,
    /// The clock of all.
    pub clock: Option<Source>,
    /// What the other hosts' clocks are made wrong by.
    pub injected_error: Option<InjectedClockError>,
    /// Where the output goes.
    pub output: Output,
}

/// Compares.
pub fn clocks(asked: Clocks, typed: Vec<String>) -> Result<Exit, CommandError> {
    let Clocks { to, time, interface, clock, injected_error, output } = asked;
    let transports = vec![TransportKind::Udp];
    let interfaces = interface.clone();
    let look = ProbeRequest { transports, interfaces, cpus: Vec::new(), threads: 1, clock };
    let nodes = to.iter().cloned().map(Node::Remote).collect();
    let mut hosts = hosts::reach(&Place::Hosts(nodes, Pairs::First), &look)?;
    let all = |hosts: &mut [RemoteHost]| -> Result<Exit, CommandError> {
        let plan = plan(&to, injected_error);
        let (writer, json) = (measure::writer(&output, "clocks", NEED)?, output.json);
        let interrupted = process::interrupts()?;
        let stage = RunContext {
            program: process::program()?,
            command: typed,
            clock,
            interrupted: &interrupted,
            hosts: &[],
            unavailable: Vec::new(),
            patterns: registry::FOR_RUNS,
        };
        let hosts = hosts.iter_mut().collect();
        let record = compared::compare(&plan, &stage, hosts, interface.as_ref(), time)?;
        measure::tell(&record, writer, json)?;
        Ok(if record.complete { Exit::Right } else { Exit::Incomplete })
    };
    let exit = all(&mut hosts);
    hosts::leave(hosts);
    exit
}

/// A plan that measures nothing but clocks.
fn plan(to: &[HostSpec], injected_clock_error: Option<InjectedClockError>) -> Plan {
    Plan {
        name: "clocks".into(),
        cases: Vec::new(),
        rounds: Rounds { least: 1, most: 1, until: None },
        cpus: Vec::new(),
        hosts: to.to_vec(),
        pairs: None,
        concurrent: Vec::new(),
        injected_clock_error,
        seed: 0,
        threshold: Span(0),
        study: None,
    }
}
