//! What the files of a pattern use, in one list: the contracts of the stages and their types. A
//! program around the library that brings a pattern of its own uses it too.

pub use super::options::{BURST, MEASUREMENT, PAUSE, PatternOptions, SIZE, WINDOW, with_sizes};
pub use crate::agent::error::AgentError;
pub use crate::agent::execution::{PatternExecution, Prepared, RoleLoop, ThreadContext};
pub use crate::agent::rows::{MESSAGES_PER_SECOND, rows};
pub use crate::clock::{Clock, TickSpan, Ticks};
pub use crate::loops::closed::{self, RoundTrips};
pub use crate::loops::compiled::{Compiled, ForVerbs};
pub use crate::loops::deadline::Deadline;
pub use crate::loops::flow::Flow;
pub use crate::loops::waiter::{Waited, Waiter};
pub use crate::loops::{Ended, Loop, LoopContext, Scope, payload};
pub use crate::options::{Given, Named, OptionDef, OptionTable, UsageError, each_once, grouped};
pub use crate::plan::request::{refuse_found, within};
pub use crate::plan::{
    self, Bound, Case, CaseProfile, CasesSoFar, Combination, Ending, Followed, OneSpec,
    PatternRequest, PatternSpec, Plan, Request, Schedule, Settings, Topology, Trace, Wait, sweep,
};
pub use crate::record::schema::{Counts, RateFigure, Record, Run};
pub use crate::run::analysis::{
    Arrivals, Collector, NextCase, PatternAnalysis, RoundSeen, RunSoFar,
};
pub use crate::run::rates::Work;
pub use crate::sample::arena::Row;
pub use crate::sample::join::Times;
pub use crate::sample::recorder::Recorder;
pub use crate::sample::{Flags, RoundSamples, Sample};
pub use crate::stats::rate::Delivered;
pub use crate::stats::{Metric, RateMetric, Summary};
pub use crate::transport::counter::{CounterValue, FinalCounters};
pub use crate::transport::{
    Descriptor, Endpoint, Events, Link, Posted, Role, Slot, Traffic, TransportKind,
};
pub use crate::units::{Bytes, MessageRate, Span};
pub use crate::view::PatternView;
pub use crate::view::model::{
    Axis, Cell, Data, Note, OfRun, Plot, Section, Series, Show, Style, Table, TableField, Unit,
    ends, figure, number, own, quantile_fields, text,
};
pub use serde::{Deserialize, Serialize};
pub use serde_json::Value;
pub use std::collections::BTreeMap;
