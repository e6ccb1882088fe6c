//! The client of `load` and `latency` over several connections, which its requests use in turn.

use super::client::{Looked, RequestPath};
use super::connections::ClientConnections;
use super::contents::Contents;
use crate::prelude::*;
use wiregauge_transport::endpoint_set::EndpointSet;

/// The connections of one thread, used in turn.
pub struct InTurn<'a, E, T> {
    connections: ClientConnections<'a, E>,
    contents: T,
    sent: u64,
}

impl<'a, E: Endpoint, T: Contents> InTurn<'a, E, T> {
    /// Returns the path over these connections.
    pub fn over(set: &'a mut EndpointSet<E>, contents: T) -> InTurn<'a, E, T> {
        InTurn { connections: ClientConnections::over(set), contents, sent: 0 }
    }
}

/// Returns the connection of the request of this number.
#[inline(always)]
pub fn connection_of(sequence: u64, connections: usize) -> usize {
    (sequence % connections.max(1) as u64) as usize
}

/// Returns what says by which connection of a client's thread each request goes.
pub fn connections_of(case: &Case) -> Box<dyn Fn(u64) -> u32> {
    let connections = case.topology.endpoints_of_role(Role::Client) as usize;
    Box::new(move |sequence| connection_of(sequence, connections) as u32)
}

impl<E: Endpoint, T: Contents> RequestPath for InTurn<'_, E, T> {
    #[inline(always)]
    fn send<C: Clock>(&mut self, clock: C, sequence: u64, plan: &Loop) -> Option<Ticks> {
        let InTurn { connections, contents, sent } = self;
        let number = connection_of(sequence, connections.count());
        let submit = connections.post(number, plan.size, clock, |message| {
            contents.write(message, sequence, plan.check);
        })?;
        *sent = sequence + 1;
        Some(submit)
    }

    #[inline(always)]
    fn has_completed(&self) -> bool {
        self.connections.have_completed()
    }

    #[inline]
    fn poll<W: Waiter, C: Clock>(
        &mut self,
        waiter: &mut W,
        sleeps: bool,
        clock: C,
        plan: &Loop,
        mut take: impl FnMut(u64, Ticks, bool),
    ) -> Looked {
        let InTurn { connections, contents, sent } = self;
        connections.poll(waiter, sleeps, clock, |message, receive| {
            let sequence = contents.sequence(message, *sent);
            let is_other = plan.check && !contents.is_answer(message, sequence);
            take(sequence, receive, is_other);
        })
    }
}
