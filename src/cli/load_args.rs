//! The options of `load`.

use super::args::{CommonArguments, WHAT};
use super::schedule_args::{ScheduleArguments, TimerArguments};
use super::values::{self, Arrivals};
use crate::pattern::load::{self, Asked, Buffers, Search, Spec};
use crate::plan::{Refusal, Request, Schedule, Slo};
use crate::units::{Bytes, MessageRate};
use clap::Args;

#[derive(Debug, Args)]
pub struct LoadArguments {
    /// Requests per second: 50k, a list, or a sweep as 1k..100k/8 (8 steps, logarithmic)
    /// [default: searched from idle to saturation, finer around the knee]
    #[arg(long, value_name = "RATES", help_heading = WHAT, value_parser = values::rates)]
    pub rate: Option<values::Rates>,
    /// Closed loop instead: so many clients with one request each, as 8 or a list as 1,2,4,8
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = WHAT)]
    #[arg(value_parser = values::count32)]
    pub clients: Vec<u32>,
    /// The highest rate is wanted that keeps this, as 'p99<50us'; exit code 1 where none does
    #[arg(long, value_name = "BOUND", help_heading = WHAT)]
    pub slo: Option<Slo>,
    /// Small requests per second beside the load, on a connection of their own: what such a message
    /// suffers from it
    #[arg(long, value_name = "RATE", help_heading = WHAT)]
    pub probe: Option<MessageRate>,
    /// Objects of the server's table [default: 100k]
    #[arg(long, value_name = "N", value_parser = values::count, help_heading = WHAT)]
    pub objects: Option<u64>,
    /// Bytes of an object [default: 100B]; request and answer have 16 more
    #[arg(long, value_name = "SIZE", help_heading = WHAT)]
    pub object_size: Option<Bytes>,
    /// Transmit buffers of the server, 1 to 64; its pools are then measured [default: 64]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = WHAT)]
    pub tx_buffers: Option<u32>,
    /// Receive buffers of the server, 1 to 64 [default: 64]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = WHAT)]
    pub rx_buffers: Option<u32>,
    /// Most requests on the way [default: 65536]
    #[arg(long, value_name = "N", value_parser = values::count32, help_heading = WHAT)]
    pub window: Option<u32>,
    #[command(flatten)]
    pub common: CommonArguments,
    #[command(flatten)]
    pub schedule: ScheduleArguments,
    #[command(flatten)]
    pub timer: TimerArguments,
}

impl LoadArguments {
    /// The request, and the options that all patterns have.
    pub fn request(self) -> Result<(Request, CommonArguments), Refusal> {
        let usual = Spec::default();
        let buffers = (self.tx_buffers.is_some() || self.rx_buffers.is_some()).then(|| {
            let most = load::MOST_BUFFERS;
            Buffers {
                transmit: self.tx_buffers.unwrap_or(most),
                receive: self.rx_buffers.unwrap_or(most),
            }
        });
        let rates = self.rate.map_or_else(Vec::new, |rates| rates.0);
        if !self.clients.is_empty() && (!rates.is_empty() || self.schedule.trace.is_some()) {
            let sentence = "--clients is a closed loop, which no rate and no trace drives; write \
                            one of --clients, --rate, --trace";
            return Err(Refusal(sentence.into()));
        }
        let is_closed = !self.clients.is_empty();
        let searches = rates.is_empty() && !is_closed && self.schedule.trace.is_none();
        // A search draws its own rates; the kind of its intervals is asked for by any.
        let rate = rates.first().copied().or(searches.then_some(MessageRate(1.0)));
        let (schedule, trace) = self.schedule.schedule(rate, Arrivals::Poisson)?;
        let spec = Spec {
            objects: self.objects.unwrap_or(usual.objects),
            object_size: self.object_size.unwrap_or(usual.object_size),
            buffers,
            window: self.window.unwrap_or(usual.window),
            probe_rate: self.probe,
            slo: self.slo,
            search: searches.then_some(Search { arrivals: schedule }),
            ..usual
        };
        if is_closed && self.slo.is_some() {
            let sentence = "--slo is a bound for the response to a schedule, which a closed loop \
                            does not have; write it without --clients";
            return Err(Refusal(sentence.into()));
        }
        let schedule = if is_closed { Schedule::ClosedLoop } else { schedule };
        let request = load::request(Asked { spec, rates, clients: self.clients });
        let timer = self.timer.timer;
        Ok((Request { schedule, trace, timer, ..request }, self.common))
    }
}
