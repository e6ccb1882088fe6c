//! What the files of a pattern use, in one list: the contracts of the stages and their types. A
//! program around the library that brings a pattern of its own uses it too.

pub use super::options::{
    BURST, CONNECTIONS, MEASUREMENT, PAUSE, PatternOptions, SIZE, WINDOW, with_sizes,
};
pub use serde::{Deserialize, Serialize};
pub use serde_json::Value;
pub use std::collections::BTreeMap;
pub use wiregauge_analysis::pattern::{
    Arrivals, Collector, NextCase, PatternAnalysis, RoundSeen, RunSoFar,
};
pub use wiregauge_analysis::rates::Work;
pub use wiregauge_base::options::{
    Given, Named, OptionDef, OptionTable, UsageError, each_once, grouped,
};
pub use wiregauge_base::units::{Bytes, MessageRate, Span};
pub use wiregauge_clock::{Clock, TickSpan, Ticks};
pub use wiregauge_figures::record::schema::{Counts, RateFigure, Record, Run};
pub use wiregauge_figures::view::PatternView;
pub use wiregauge_figures::view::model::{
    Axis, Cell, Data, Note, OfRun, Plot, Section, Series, Show, Style, Table, TableField, Unit,
    ends, figure, number, own, quantile_fields, text,
};
pub use wiregauge_measure::agent::error::AgentError;
pub use wiregauge_measure::agent::execution::{
    PatternExecution, Prepared, RoleLoop, ThreadContext,
};
pub use wiregauge_measure::agent::rows::{MESSAGES_PER_SECOND, rows};
pub use wiregauge_measure::loops::closed::{self, RoundTrips};
pub use wiregauge_measure::loops::compiled::{Compiled, ForVerbs};
pub use wiregauge_measure::loops::deadline::Deadline;
pub use wiregauge_measure::loops::flow::Flow;
pub use wiregauge_measure::loops::waiter::{Waited, Waiter};
pub use wiregauge_measure::loops::{Ended, Loop, LoopContext, Scope, payload};
pub use wiregauge_plan::request::{refuse_found, within};
pub use wiregauge_plan::{
    self as plan, Bound, Case, CaseProfile, CasesSoFar, Combination, Ending, Followed, OneSpec,
    PatternRequest, PatternSpec, Plan, Request, Schedule, Settings, Topology, Trace, Wait, sweep,
};
pub use wiregauge_sample::arena::Row;
pub use wiregauge_sample::join::Times;
pub use wiregauge_sample::recorder::Recorder;
pub use wiregauge_sample::{Flags, RoundSamples, Sample};
pub use wiregauge_stats::rate::Delivered;
pub use wiregauge_stats::{Metric, RateMetric, Summary};
pub use wiregauge_transport::counter::{CounterValue, FinalCounters};
pub use wiregauge_transport::{
    Descriptor, Endpoint, Events, Link, Posted, Role, Slot, Traffic, TransportKind,
};
