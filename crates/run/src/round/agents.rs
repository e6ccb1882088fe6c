//! How the agents of a round are started, and whether their clocks are known well enough for it.

use super::Round;
use crate::running_rank::RunningRank;
use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;
use std::time::Duration;
use wiregauge_base::units::Span;
use wiregauge_base::warning::number::time;
use wiregauge_clock::LocalNs;
use wiregauge_measure::control::fault::Fault;
use wiregauge_remote::launch::Launch;
use wiregauge_remote::process::{Agent, AgentMessage};
use wiregauge_remote::ssh::Session;

impl Round<'_> {
    /// The instant at which its own ranks start, where all rounds of this time have this one.
    pub(super) fn start_of(&self, common: Option<LocalNs>) -> Result<Option<LocalNs>, Fault> {
        let after = self.case.part.after;
        ensure!(
            common.is_some() || after == Span(0),
            Fault::Refused(format!(
                "a start after {after} needs an instant that all hosts know, and their clocks are \
                 not compared: leave it out"
            ))
        );
        Ok(common.map(|at| LocalNs(at.0 + after.0 as f64)))
    }

    /// From now to that instant.
    pub(super) fn until_start(&self) -> Duration {
        let Some(at) = self.start else { return Duration::ZERO };
        let clock = &self.conditions.clock;
        let left_ns = at.0 - clock.time.local(clock.source.read()).0;
        Duration::from_nanos(left_ns.max(0.0) as u64)
    }

    /// Refuses a round whose times mean nothing by clocks that are known no better.
    pub(super) fn check_clocks(&self) -> Result<(), Fault> {
        let Some(within) = self.case.profile().clock_within else { return Ok(()) };
        // Those of one host have one clock.
        let hosts: BTreeSet<_> = self.case.topology.ranks.iter().map(|rank| rank.host).collect();
        let bounds_ns =
            hosts.into_iter().map(|host| self.conditions.clock_bound_ns(host, self.start));
        check_bounds(bounds_ns, within)
    }

    /// Starts the agents, each by itself or all by a launcher, but for those that have stayed from
    /// an earlier round; of each rank whether its agent was started, and is greeted.
    pub(super) fn start_agents(
        &mut self,
        order: &[usize],
        tx: SyncSender<AgentMessage>,
    ) -> Result<Vec<bool>, Fault> {
        let mut started = vec![true; order.len()];
        let conditions = self.conditions;
        if let Some(words) = conditions.launcher(self.case) {
            let (ranks, program) = (self.ranks.len(), &conditions.program);
            let interrupted = conditions.context.interrupted;
            let (launch, sockets, known) = Launch::start(&words, program, ranks, interrupted)?;
            for (rank, socket) in sockets.into_iter().enumerate() {
                let (role, own) = (self.ranks[rank].role, (socket, known));
                let agent = Agent::of_launch(&launch, own, rank, role, tx.clone())?;
                self.ranks[rank].agent = Some(agent);
            }
            return Ok(started);
        }
        let may_stay = conditions.shares_processes(self.case);
        for &rank in order {
            let number = self.case.topology.ranks[rank].host;
            if may_stay && let Some(mut agent) = conditions.residents.take(number) {
                agent.reassign(rank, self.ranks[rank].role, tx.clone());
                self.ranks[rank].agent = Some(agent);
                started[rank] = false;
                continue;
            }
            let here = || Session::new(None, &conditions.program);
            let RunningRank { role, host, agent, .. } = &mut self.ranks[rank];
            let session = host.map_or_else(here, |host| host.session.clone());
            *agent = Some(Agent::start(&session, rank, *role, tx.clone())?);
        }
        Ok(started)
    }
}

/// Refuses clocks of which two may be apart by more than this.
fn check_bounds(bounds_ns: impl Iterator<Item = f64>, within: Span) -> Result<(), Fault> {
    let mut bounds_ns: Vec<f64> = bounds_ns.collect();
    bounds_ns.sort_by(|a, b| b.total_cmp(a));
    let worst_ns: f64 = bounds_ns.iter().take(2).sum();
    ensure!(
        worst_ns <= within.0 as f64,
        Fault::Refused(format!(
            "the clocks of the hosts are known to {}, and this needs {within}: use longer slots, \
             or clocks that are kept right (`wiregauge clocks`)",
            time(worst_ns)
        ))
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_too_coarse_for_the_slots_are_refused_with_both_figures() {
        let of = |bounds: &[f64]| check_bounds(bounds.iter().copied(), Span(5000));
        let refused = of(&[0.0, 4701.0, 300.0, 100.0]).unwrap_err();
        assert!(refused.is_refused());
        let said = refused.to_string();
        assert!(said.contains("known to 5.00 us, and this needs 5 us"), "{said}");
        assert!(of(&[0.0, 5000.0]).is_ok() && of(&[0.0, 4700.0, 300.0, 300.0]).is_ok());
        // One that was never compared.
        assert!(of(&[0.0, f64::INFINITY]).is_err());
    }
}
