//! Joins the processes of a job before anything is measured: rank 0 becomes the controller, the
//! others its agents.

use super::CommandError;
use super::console::complain;
use super::process::{interrupts, program};
use crate::cli::Command;
use crate::pattern::registry;
use crate::plan::{HostSpec, Place};
use crate::remote::job::{self, Gathered};
use std::ops::ControlFlow;

/// `Break`: this process was an agent until rank 0 exited. `Continue`: it is the controller, with
/// the other ranks if there are any. They exit when this is dropped.
pub type Joined = ControlFlow<(), Option<Gathered>>;

/// Joins a job, where this process is one of it. Rank 0 fills in the agents' addresses of the ranks
/// among the command's hosts.
pub fn join(command: &mut Command) -> Result<Joined, CommandError> {
    let (rank, hosts) = match command {
        Command::Measure { request, options } => (&options.rank, others(&mut request.place)),
        Command::Run(asked) => (&asked.options.rank, others(&mut asked.place)),
        Command::Clocks(asked) => (&asked.options.rank, asked.hosts.iter_mut().collect()),
        Command::Hosts(asked) => (&asked.rank, asked.hosts.iter_mut().collect()),
        Command::Doctor { hosts, rank, .. } => (&*rank, hosts.iter_mut().flatten().collect()),
        _ => return Ok(Joined::Continue(None)),
    };
    let Some(rank) = rank else { return Ok(Joined::Continue(None)) };
    if rank.rank > 0 {
        job::serve(rank, &program()?, registry::find)?;
        return Ok(Joined::Break(()));
    }
    let gathered = job::gather(rank, &*interrupts()?, |sentence| complain(&sentence))?;
    fill(hosts, &gathered.hosts);
    Ok(Joined::Continue(Some(gathered)))
}

/// The other hosts of a place.
fn others(place: &mut Place) -> Vec<&mut HostSpec> {
    place.nodes.iter_mut().flatten().collect()
}

fn fill(hosts: Vec<&mut HostSpec>, ranks: &[HostSpec]) {
    for spec in hosts {
        if let Some(known) = ranks.iter().find(|known| known.host == spec.host) {
            *spec = known.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_given_their_addresses() {
        let spec = |rank, agent: Option<&str>| HostSpec {
            host: job::name(rank),
            agent: agent.map(String::from),
            ..HostSpec::default()
        };
        let known = [spec(1, Some("[10.0.0.1]:80")), spec(2, Some("[10.0.0.2]:80"))];
        let nodes = vec![None, Some(spec(2, None)), Some(spec(1, None))];
        let mut place = Place { nodes, ..Place::default() };
        fill(others(&mut place), &known);
        let [None, Some(two), Some(one)] = &place.nodes[..] else { panic!() };
        assert_eq!((two, one), (&known[1], &known[0]));
    }
}
