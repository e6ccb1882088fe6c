//! What a plan needs of a pattern: its name, its specification, what it asks of a transport.
//!
//! A plan knows patterns by this trait alone. Those that there are stand in `crates/patterns/src/`;
//! who reads a name is handed the list of them.
#![warn(missing_docs)]

use super::{Case, Plan, Request, Trace, UsageError, sweep};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::any::Any;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::sync::Arc;
use wiregauge_base::options::{self, OptionDef, OptionTable, Unit};
use wiregauge_base::units::{Bytes, Span};
use wiregauge_signal::Kind;
use wiregauge_transport::{Descriptor, Lengths, Role, Settings, Traffic, TransportKind, Wait};

/// What a case asks of its pattern, beyond what all patterns have. Only the pattern itself knows
/// its type.
pub trait Specification: Debug + Any + Send + Sync {
    /// As records and control messages carry it.
    fn to_json(&self) -> Value;
}

impl<T: Serialize + Debug + Any + Send + Sync> Specification for T {
    fn to_json(&self) -> Value {
        // A map with keys that are not text: no specification has one.
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

/// A [`Specification`] of any pattern.
#[derive(Clone)]
pub struct Spec(Arc<dyn Specification>);

impl Spec {
    /// Of a pattern's own type.
    pub fn new(own: impl Specification) -> Spec {
        Spec(Arc::new(own))
    }

    /// Of a pattern's own type, from what [`Specification::to_json`] wrote. A number is refused
    /// that is beyond the limits of the option of its name.
    pub fn read<T: Specification + DeserializeOwned>(
        json: Value,
        options: OptionTable,
    ) -> Result<Spec, String> {
        Spec::read_checked(json, |own: &T| check_limits(own, options))
    }

    /// The same with a check of the pattern's own.
    pub fn read_checked<T: Specification + DeserializeOwned>(
        json: Value,
        check: impl FnOnce(&T) -> Result<(), UsageError>,
    ) -> Result<Spec, String> {
        let own: T = serde_json::from_value(json).map_err(|error| error.to_string())?;
        check(&own).map_err(|wrong| wrong.to_string())?;
        Ok(Spec::new(own))
    }

    /// As the pattern's own type, where it is that.
    pub fn get<T: Any>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// As records and control messages carry it.
    pub fn to_json(&self) -> Value {
        self.0.to_json()
    }
}

/// Refuses a number of a specification that is beyond the limits of the option of its name.
pub fn check_limits(own: &impl Specification, options: OptionTable) -> Result<(), UsageError> {
    let json = own.to_json();
    let is_number = |one: &&OptionDef| {
        !one.is_list
            && matches!(one.kind, options::Kind::Number { unit: Unit::One | Unit::Byte, .. })
    };
    options.iter().filter(is_number).try_for_each(|option| {
        let number = json.get(option.name.replace('-', "_")).and_then(Value::as_u64);
        let checked = number.map_or(Ok(()), |number| option.check_one(&number.to_string()));
        checked.map_err(UsageError::of_option(option.name))
    })
}

impl Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.to_json() == other.to_json()
    }
}

/// A pattern, as plans know it.
pub type PatternRef = &'static dyn PatternSpec;

impl PartialEq for dyn PatternSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Debug for dyn PatternSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Finds a pattern by the name that commands, records and control messages give it.
pub type FindPattern = fn(&str) -> Option<PatternRef>;

/// How the ranks of a round come to know that nothing more is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A thread of the server is told what the client's thread of its number has sent.
    SenderTellsReceiver,
    /// The same both ways.
    EachTellsOther,
    /// The server's threads end when all of the client have: each talked to all.
    ServersAfterClients,
}

/// How the kernel's stamps of a message are told from those of others (`explain`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// One goes there and back at a time: what is stamped meanwhile is its own.
    Alone,
    /// Messages one way that are numbered in the order of sending.
    OneWay,
    /// Requests that are numbered in the order of sending, whose replies have the same number and
    /// come in the order of their connection.
    RoundTrips {
        /// Bytes of each reply; `None`: as many as its request has.
        reply: Option<Bytes>,
    },
}

/// What a case asks of its transport and its ranks.
#[derive(Clone, Copy, Debug)]
pub struct CaseProfile {
    /// What flows between the ranks, where both take part.
    pub traffic: Traffic,
    /// Whether only one end of a connection acts, given the case's operation.
    pub is_one_sided: bool,
    /// Messages that are posted together, before a flush.
    pub burst: u32,
    /// Pause between two bursts of a closed loop.
    pub pause: Span,
    /// Most messages that an end has posted and not completed: the depth of its queues.
    pub queue_depth: u32,
    /// Whether a client may have more messages unanswered than that.
    pub outruns_window: bool,
    /// Whether its messages have different lengths, up to the size of the case.
    pub has_many_lengths: bool,
    /// Whether more is written into messages, or read of them, than their number.
    pub reads_payloads: bool,
    /// The kind of the values in its messages, for transports that carry samples in a form of
    /// their own.
    pub value_kind: Kind,
    /// Whether the server stamps what it receives: then it has its turn also where one process
    /// simulates both roles.
    pub stamps_at_server: bool,
    /// Whether times are taken from a stamp of one end to one of the other: both clocks must be
    /// known, and a round whose time was to end it ends where its rows are used.
    pub is_one_way: bool,
    /// Messages for one sample.
    pub stride: u64,
    /// How the ranks come to know that nothing more is sent; nodes tell each other.
    pub ending: Ending,
    /// How far apart the clocks of its ranks may be at most for its times to mean anything: a round
    /// is refused where they are known less well.
    pub clock_within: Option<Span>,
    /// CPUs of each end that what runs at the same time takes first.
    pub cpus_before: u32,
    /// Whether it is measured for the sake of others: graphs do not show it.
    pub is_preparation: bool,
    /// Values of a sample, for graphs.
    pub values: Option<u32>,
    /// Clients of a closed loop, for graphs.
    pub clients: Option<u32>,
    /// How its messages are followed through the kernel; `None`: they are not.
    pub followed: Option<Followed>,
}

impl CaseProfile {
    /// Round trips, one message at a time.
    pub fn of(case: &Case) -> CaseProfile {
        CaseProfile {
            traffic: Traffic::Echo { every: 1 },
            is_one_sided: case.settings.operation().is_one_sided(false),
            burst: 1,
            pause: Span(0),
            queue_depth: 1,
            outruns_window: false,
            has_many_lengths: false,
            reads_payloads: case.check,
            value_kind: Kind::default(),
            stamps_at_server: false,
            is_one_way: false,
            stride: 1,
            ending: Ending::SenderTellsReceiver,
            clock_within: None,
            cpus_before: 0,
            is_preparation: false,
            values: None,
            clients: None,
            followed: None,
        }
    }

    /// The same in bursts: a closed loop never has more than one of them on the way.
    pub fn of_bursts(case: &Case, burst: u32, pause: Span) -> CaseProfile {
        CaseProfile { burst, pause, queue_depth: burst, ..CaseProfile::of(case) }
    }

    /// The lengths of its messages.
    pub fn lengths(&self) -> Lengths {
        if self.has_many_lengths { Lengths::Varied } else { Lengths::Fixed }
    }
}

/// What a plan needs of a pattern.
pub trait PatternSpec: Sync {
    /// The name as typed and recorded.
    fn name(&self) -> &'static str;

    /// A specification from what [`Specification::to_json`] wrote. It is foreign input: what the
    /// pattern could not run is refused in a sentence.
    fn read_spec(&self, json: Value) -> Result<Spec, String>;

    /// Whether a specification that came over a network fits its case.
    fn check_foreign(&self, _case: &Case) -> Result<(), String> {
        Ok(())
    }

    /// Whether a transport can carry it, in some direction.
    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Echo { every: 1 })
    }

    /// What a case asks of its transport and its ranks.
    fn profile(&self, case: &Case) -> CaseProfile {
        CaseProfile::of(case)
    }

    /// Settings of the transport at one end.
    fn settings_of(&self, case: &Case, _role: Role) -> Settings {
        case.settings.clone()
    }

    /// Which of the connections of a thread of the client each message goes over, by its number.
    fn connection_of(&self, _case: &Case, _thread: u32) -> Box<dyn Fn(u64) -> u32> {
        Box::new(|_| 0)
    }

    /// The case as one of its rounds runs it.
    fn for_round(&self, case: &Case, _round: u32, _of: u32) -> Case {
        case.clone()
    }

    /// What distinguishes the points of a curve.
    fn point(&self, _case: &Case) -> Option<String> {
        None
    }

    /// A short name that distinguishes the case from the others of a plan.
    fn label(&self, case: &Case) -> String {
        case.label_as(self.name(), "")
    }

    /// The label within a plan, where it says more: what the case runs beside.
    fn label_in(&self, _plan: &Plan, _case: usize) -> Option<String> {
        None
    }

    /// Returns the most bytes that a thread of a role needs in addition to samples and slots: what
    /// a controller may make an agent take is bounded by it.
    fn memory(&self, _case: &Case, _role: Role) -> u64 {
        0
    }

    /// Returns the fewest bytes of these, which are touched in every round: a host without them is
    /// refused before it runs.
    fn least_memory(&self, _case: &Case, _role: Role) -> u64 {
        0
    }

    /// Returns the number of threads that each thread of a role starts for its loop.
    fn helper_threads(&self, _case: &Case, _role: Role) -> u32 {
        0
    }

    /// The cases that graphs show of it: itself, or those that are to follow it, at any rate.
    fn shown(&self, case: &Case) -> Vec<Case> {
        vec![case.clone()]
    }
}

/// One combination of what was asked for in lists.
#[derive(Clone, Copy, Debug)]
pub struct Combination {
    /// The transport.
    pub transport: TransportKind,
    /// How both ends wait.
    pub wait: Wait,
    /// Payload of a message.
    pub size: Bytes,
    /// Threads of each end.
    pub threads: u32,
    /// Hosts with clients of one server; 1 for patterns that do not support several.
    pub client_hosts: u32,
}

/// What was asked of a pattern: lists are cases.
pub trait PatternRequest: Debug + Send + Sync {
    /// Refuses what the pattern cannot do, whatever the transport.
    fn check(&self, request: &Request) -> Result<(), UsageError> {
        request.refuse_stamps()?;
        request.refuse_schedule()
    }

    /// Payloads of messages, each a case: those of a trace, else those that were given.
    fn sizes(&self, request: &Request) -> Result<Vec<Bytes>, UsageError> {
        let traced = request.trace.as_ref().map_or(Ok(None), Trace::size).map_err(UsageError)?;
        Ok(match traced {
            Some(size) => vec![size],
            None if request.perturb => sweep::perturbed(&request.sizes),
            None => request.sizes.clone(),
        })
    }

    /// Whether one server may have clients on several hosts.
    fn has_many_clients(&self) -> bool {
        false
    }

    /// Whether its ranks are nodes ([`Role::Node`]): each host that is named is one, and none of
    /// their pairs is a case.
    fn has_nodes(&self) -> bool {
        false
    }

    /// Refuses what a transport cannot do of it.
    fn check_over(&self, _request: &Request, _over: TransportKind) -> Result<(), UsageError> {
        Ok(())
    }

    /// The cases of a combination: one for each point that was asked for.
    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case>;

    /// Refuses what a study cannot have.
    fn check_in_study(&self) -> Result<(), UsageError> {
        Ok(())
    }

    /// Adds what runs beside the cases from `first` on.
    fn add_beside(&self, _layout: &mut CasesSoFar, _first: usize) {}

    /// Adds cases that measure for others, when all of the others are there.
    fn complete(&self, _layout: &mut CasesSoFar) {}
}

/// A request for the cases of one specification, sent in a closed loop.
#[derive(Clone, Debug)]
pub struct OneSpec<S>(pub S);

impl<S: Specification + Clone> PatternRequest for OneSpec<S> {
    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        vec![request.case(of, self.0.clone())]
    }
}

/// The cases of a plan while it is made.
#[derive(Debug, Default)]
pub struct CasesSoFar {
    /// The cases.
    pub cases: Vec<Case>,
    /// Numbers of those that run at the same time.
    pub concurrent: Vec<Vec<u32>>,
}

impl CasesSoFar {
    /// Adds cases, of which those with these numbers run at the same time, and gives their numbers
    /// among all.
    pub fn add(
        &mut self,
        cases: impl IntoIterator<Item = Case>,
        concurrent: &[Vec<u32>],
    ) -> Range<u32> {
        let first = self.cases.len() as u32;
        let numbered = |group: &Vec<u32>| group.iter().map(|one| first + one).collect();
        self.concurrent.extend(concurrent.iter().map(numbered));
        self.cases.extend(cases);
        first..self.cases.len() as u32
    }
}
