//! The agent's half of the clock comparison: it answers clock exchanges while rounds run.

use crate::agent::error::{AgentError, unable};
use crate::control::frame;
use crate::control::protocol::{AnswerClock, FromAgent, ToAgent};
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;
use wiregauge_clock::exchange::ExchangeEnd;
use wiregauge_host::ResourceUse;
use wiregauge_transport::{address_of_site, bind_within_limits, is_peer};

/// How often the control channel is checked.
const CHECK: Duration = Duration::from_millis(100);

/// Answers until the controller closes its channel.
pub(crate) fn answer(
    task: &AnswerClock,
    control: &Receiver<ToAgent>,
    output: &mut impl io::Write,
) -> Result<(), AgentError> {
    wiregauge_host::stay_off(&task.leaves);
    let before = ResourceUse::of_thread();
    const WHAT: &str = "answering clock exchanges";
    let address = address_of_site(&task.site, None).map_err(unable(WHAT))?;
    let bind = |address| ExchangeEnd::bind(address, task.clock, task.cookie);
    let mut answering = bind_within_limits(address, bind).map_err(unable(WHAT))?;
    let address = answering.address().map_err(unable(WHAT))?;
    frame::write(output, &FromAgent::ClockAddress(address))?;
    while !matches!(control.try_recv(), Err(TryRecvError::Disconnected)) {
        answering.answer(CHECK, is_peer).map_err(unable(WHAT))?;
    }
    let cpu_ns = ResourceUse::of_thread().since(&before).cpu_ns;
    // Fails only where the controller is gone.
    let _ = frame::write(output, &FromAgent::ClockAnswered { datagrams: answering.sent, cpu_ns });
    Ok(())
}
