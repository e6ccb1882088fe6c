//! The sender that its window limits: messages one way as fast as they can be posted, of which at
//! most so many are on the way. The receiver is [`closed::server`], which then answers nothing.

use crate::prelude::*;

/// The sender. It posts each message by itself. A burst ends when all of its messages have
/// completed, and the next one begins no sooner than a pause after the last post.
///
/// Between the submit stamp of a message and the last store of its doorbell lie the post and the
/// flush. A poll for completions follows each post where completions are stamped, so that their
/// times are right; else only where the window is full, since a poll may be a system call.
pub fn client<E: Endpoint, W: Waiter, C: Clock>(context: LoopContext<'_, '_, E, W, C>) -> Ended {
    let LoopContext { endpoint, mut waiter, clock, gate, plan, recorder, .. } = context;
    let scope = Scope { clock, gate, plan };
    let mut sender = Sender { flow: Flow::through(endpoint, plan), events: Events::default() };
    let mut deadline = Deadline::default();
    let mut left = plan.burst;
    loop {
        let submit = match sender.send(endpoint, &mut waiter, scope, recorder) {
            Ok(submit) => submit,
            Err(ended) => return ended,
        };
        let sent = sender.flow.sent;
        let ended = if sent >= plan.messages {
            Some(Ended::Count)
        } else {
            deadline.is_past(submit, sent, plan).then_some(Ended::Time)
        };
        if let Some(ended) = ended {
            let until = clock.now() + plan.drain;
            let settled = sender.settle(endpoint, &mut waiter, scope, recorder, Some(until));
            // The other end may go as soon as it has all.
            let is_whole = sender.flow.outstanding() == 0;
            return settled.err().filter(|_| !is_whole).unwrap_or(ended);
        }
        if plan.completions
            && endpoint.poll(&mut sender.events)
            && let Some(ended) = sender.take(scope, recorder)
        {
            return ended;
        }
        left -= 1;
        if left == 0 {
            left = plan.burst;
            let settled = sender.settle(endpoint, &mut waiter, scope, recorder, None);
            if let Err(ended) = settled {
                return ended;
            }
            if plan.pause.0 != 0 && !gate.idle_until(clock, submit + plan.pause, plan.lead) {
                return Ended::Stopped;
            }
        }
        if gate.is_stopped() {
            return Ended::Stopped;
        }
    }
}

/// How far the sender is, and what its last poll found.
struct Sender {
    flow: Flow,
    events: Events,
}

impl Sender {
    /// Sends the next message as soon as there is room; its submit stamp.
    #[inline(always)]
    fn send<E: Endpoint, W: Waiter, C: Clock>(
        &mut self,
        endpoint: &mut E,
        waiter: &mut W,
        scope: Scope<'_, C>,
        recorder: &mut Recorder<'_>,
    ) -> Result<Ticks, Ended> {
        let Scope { clock, plan, .. } = scope;
        while !self.flow.has_room() {
            self.make_room(endpoint, waiter, scope, recorder)?;
        }
        let slot = self.flow.write(endpoint, plan);
        let mut submit = clock.now();
        while !self.flow.post(endpoint, slot, plan.size) {
            self.make_room(endpoint, waiter, scope, recorder)?;
            // The wait for room is no part of what the transport takes.
            submit = clock.now();
        }
        endpoint.flush();
        recorder.sent(self.flow.sent - 1, Ticks(0), submit, Ticks(0));
        recorder.seen.sent = self.flow.sent;
        recorder.handled(self.flow.sent);
        Ok(submit)
    }

    /// One attempt to make room.
    #[inline]
    fn make_room<E: Endpoint, W: Waiter, C: Clock>(
        &mut self,
        endpoint: &mut E,
        waiter: &mut W,
        scope: Scope<'_, C>,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), Ended> {
        waiter.once(endpoint, &mut self.events);
        let ended = self.take(scope, recorder);
        let stopped = scope.gate.is_stopped().then_some(Ended::Stopped);
        ended.or(stopped).map_or(Ok(()), Err)
    }

    /// Takes what a poll has found; `Some` where the link is down.
    #[inline(always)]
    fn take<C: Clock>(
        &mut self,
        scope: Scope<'_, C>,
        recorder: &mut Recorder<'_>,
    ) -> Option<Ended> {
        let Sender { flow, events } = self;
        if scope.plan.completions && events.completed > 0 {
            let complete = scope.clock.now();
            for number in 0..u64::from(events.completed) {
                recorder.completed(flow.completed + number, complete);
            }
        }
        flow.complete(events);
        (events.link != Link::Up).then(|| Ended::of(events.link))
    }

    /// Waits until all that was posted has completed, at most until this time.
    fn settle<E: Endpoint, W: Waiter, C: Clock>(
        &mut self,
        endpoint: &mut E,
        waiter: &mut W,
        scope: Scope<'_, C>,
        recorder: &mut Recorder<'_>,
        until: Option<Ticks>,
    ) -> Result<(), Ended> {
        let Scope { clock, gate, .. } = scope;
        while self.flow.outstanding() > 0 {
            match waiter.next(endpoint, &mut self.events, clock, gate, until) {
                Waited::Something => self.take(scope, recorder).map_or(Ok(()), Err)?,
                Waited::TimeUp => break,
                Waited::Look if gate.is_stopped() => return Err(Ended::Stopped),
                Waited::Look => {}
            }
        }
        Ok(())
    }
}
