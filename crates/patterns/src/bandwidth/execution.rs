//! The roles of a flow: sender and receiver, both at once, or operations on the server's memory.

use super::{Bandwidth, Direction, Spec, loops, one_sided};
use crate::prelude::*;
use wiregauge_measure::loops::one_sided::memory;

/// Rows for each second of a round that only time bounds.
const MARKS_PER_SECOND: f64 = 1e6;

impl PatternExecution for Bandwidth {
    fn rows(&self, case: &Case, _: Role) -> u64 {
        rows(case, MARKS_PER_SECOND)
    }

    fn prepare(&self, thread: &ThreadContext<'_>, _: &mut Loop) -> Prepared {
        let ThreadContext { case, role, .. } = *thread;
        let direction = case.spec::<Spec>().direction;
        Ok(Box::new(OneFlow { direction, role, is_one_sided: case.profile().is_one_sided }))
    }
}

struct OneFlow {
    direction: Direction,
    role: Role,
    is_one_sided: bool,
}

impl Compiled for OneFlow {
    fn run(&mut self, context: LoopContext<impl Endpoint, impl Waiter, impl Clock>) -> Ended {
        match (self.direction, self.role) {
            (Direction::Uni, Role::Server) if self.is_one_sided => memory(context),
            _ if self.is_one_sided => one_sided::client(context),
            (Direction::Bi, _) => loops::both(context),
            (Direction::Uni, Role::Client | Role::Node) => loops::sender(context),
            (Direction::Uni, Role::Server) => loops::receiver(context),
        }
    }
}
