//! The agent's half of the pre-flight: it can be reached until the controller closes its channel,
//! and reaches those that it is told of.

use crate::agent::error::{AgentError, unable};
use crate::control::frame;
use crate::control::protocol::{FromAgent, OpenPath, ToAgent};
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use wiregauge_transport::preflight::{POLL_TIMEOUT, PreflightEnd};

/// Serves an end until the controller closes the channel.
pub(crate) fn serve(
    task: OpenPath,
    control: &Receiver<ToAgent>,
    output: &mut impl io::Write,
) -> Result<(), AgentError> {
    let OpenPath { site, family, device, listens } = task;
    let mut end = PreflightEnd::open(&site, family, device, listens)?;
    frame::write(output, &FromAgent::PathOpened(end.addresses().clone()))?;
    let mut is_reported = false;
    loop {
        match control.try_recv() {
            Ok(ToAgent::TryPath { number, peers }) => end.begin(number, &peers)?,
            Ok(_) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        end.step(POLL_TIMEOUT).map_err(unable("the pre-flight of the data path"))?;
        if end.is_over() && !is_reported {
            is_reported = true;
            frame::write(output, &FromAgent::PathTried(end.report()))?;
        }
    }
}
