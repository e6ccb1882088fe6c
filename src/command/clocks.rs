//! `clocks`: how far another host's clock is from this one's, over a time.

use super::hosts::{ProbeRequest, with_hosts};
use super::{CommandError, Exit, measure, process};
use crate::cli::ClockOptions;
use crate::plan::{Plan, Rounds};
use crate::run::compared;
use crate::transport::{Role, TransportKind};
use crate::units::Bytes;

/// What the record and the page take at most: 200 points a host.
const NEED: Bytes = Bytes(1 << 20);

/// Compares.
pub fn clocks(asked: &ClockOptions) -> Result<Exit, CommandError> {
    let ClockOptions { time, interface, options, .. } = asked;
    let probe = ProbeRequest {
        transports: vec![TransportKind::Udp],
        interfaces: interface.clone(),
        threads: 1,
        clock: options.clock,
        ..ProbeRequest::default()
    };
    let specs: Vec<_> = asked.hosts.iter().map(|spec| (spec.clone(), Role::Server)).collect();
    with_hosts(&specs, &probe, |hosts| {
        let writer = measure::writer(options, "clocks", NEED)?;
        let interrupted = process::interrupts()?;
        let context = process::context(options, &interrupted, &[], Vec::new())?;
        let hosts = hosts.iter_mut().collect();
        let record = compared::compare(&plan(asked), &context, hosts, interface.as_ref(), *time)?;
        measure::report(&record, writer, options)?;
        Ok(if record.complete { Exit::RIGHT } else { Exit::INCOMPLETE })
    })
}

/// A plan that measures nothing but clocks.
fn plan(asked: &ClockOptions) -> Plan {
    let rounds = Rounds { least: 1, most: 1, until: None };
    let (hosts, injected_clock_error) = (asked.hosts.clone(), asked.injected_error);
    Plan { hosts, injected_clock_error, ..Plan::new("clocks", rounds, 0) }
}
