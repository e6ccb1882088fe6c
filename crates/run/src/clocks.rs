//! The clocks of the other hosts against this one's: compared while rounds run, what that says of
//! each, and what it has cost.

use super::RunContext;
use super::concurrent::has_several_clients;
use std::collections::BTreeSet;
use std::io;
use std::thread::ScopedJoinHandle;
use wiregauge_base::threads;
use wiregauge_clock::check::{self, BoundedTime, Message};
use wiregauge_clock::exchange::LENGTH;
use wiregauge_clock::offset::{Exchange, Model, Offset};
use wiregauge_clock::{ChosenClock, LocalNs, Source, Ticks};
use wiregauge_figures::record::schema::{ClockCost, ClockOffset, OffsetCheck};
use wiregauge_host::{Discipline, Environment};
use wiregauge_measure::control::fault::Fault;
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::clocks::{Comparison, Cost};
use wiregauge_remote::host::RemoteHost;
use wiregauge_sample::RoundSamples;
use wiregauge_sample::arena::Row;
use wiregauge_sample::join::{End, Times};
use wiregauge_transport::Role;

/// The clock of a run; one that a daemon keeps right says so itself.
pub fn calibrated(plan: &Plan, context: &RunContext<'_>) -> Result<ChosenClock, Fault> {
    let (asked, injected) = (context.clock, plan.injected_clock_error);
    if asked == Some(Source::Ptp) {
        Discipline::read().stated_error_ns().map_err(Fault::Refused)?;
    }
    Ok(ChosenClock::calibrate_with(asked, injected)?)
}

/// The comparison of each host's clock with this one's, where one-way times are taken there or
/// rounds of several pairs are to begin together: as many as there are hosts, however many pairs
/// these have.
pub struct Comparisons {
    running: Vec<Option<Comparison>>,
    /// What the clocks say of themselves, where that is to be believed.
    stated: Vec<Option<Offset>>,
}

/// Returns what a thread found.
fn joined<T>(
    thread: io::Result<ScopedJoinHandle<'_, Option<Result<T, Fault>>>>,
) -> Option<Result<T, Fault>> {
    match thread.map(ScopedJoinHandle::join) {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Some(Err(Fault::new("comparing the clocks of two hosts panicked"))),
        Err(error) => Some(Err(error.into())),
    }
}

impl Comparisons {
    /// Begins to compare. `cpus` are left alone.
    pub fn start(
        plan: &Plan,
        context: &RunContext<'_>,
        time: &ChosenClock,
        cpus: &[u32],
        environment: &Environment,
    ) -> Result<Comparisons, Fault> {
        // A number without a host would be taken for this one.
        let (named, reached) = (plan.hosts.len(), context.hosts.len());
        let is_whole = named == reached;
        ensure!(is_whole, Fault::new(format!("{reached} of the plan's {named} hosts are reached")));
        let hosts = context.hosts.iter();
        let stated = hosts.map(|host| stated(host, time, environment)).collect::<Result<_, _>>()?;
        let local = time.local();
        let compare = |number: usize| {
            let of_all = context.compares_clocks();
            let (case, is_needed) = compared_for(plan, number as u32, of_all)?;
            let host = context.hosts.get(number)?;
            let interface = case.settings.interfaces().filter(|_| names_own_interface(plan, case));
            let cpus = cpus.to_vec();
            let started =
                Comparison::start(host, interface.as_ref(), local, cpus, plan.injected_clock_error);
            (is_needed || started.is_ok()).then_some(started)
        };
        let started: Vec<Option<Result<Comparison, Fault>>> = std::thread::scope(|scope| {
            let hosts = 0..context.hosts.len();
            let started: Vec<_> = hosts
                .map(|host| {
                    threads::spawn_scoped("compare two clocks", scope, move || compare(host))
                })
                .collect();
            started.into_iter().map(joined).collect()
        });
        let running = started.into_iter().map(Option::transpose).collect::<Result<_, _>>();
        Ok(Comparisons { running: running?, stated })
    }

    /// What is known of the clocks of a case's ends, where one time is `needed`.
    pub fn of_ends(&self, case: &Case, needed: bool) -> KnownEnds {
        if !needed {
            return KnownEnds::default();
        }
        let mut all = KnownEnds { are_compared: true, ..KnownEnds::default() };
        all.ends = [Role::Client, Role::Server].map(|role| match self.of(case, role) {
            Some(Ok(known)) => {
                all.fault = all.fault.take().or_else(|| known.cut.clone());
                Some(known)
            }
            Some(Err(fault)) => {
                (all.fault, all.are_compared) = (Some(fault), false);
                None
            }
            None => {
                all.are_compared &= case.topology.host_of(role).is_none();
                None
            }
        });
        all
    }

    /// What is known of the clock of a case's end; `None` where that is this host's, or one-way
    /// times are not taken. Nodes are the first and, as the server, of the others the one whose
    /// clock is known least.
    fn of(&self, case: &Case, role: Role) -> Option<Result<RemoteClock, Fault>> {
        if !case.topology.is_between_hosts() {
            return None;
        }
        if !case.topology.has_nodes() || role.side() == Role::Client {
            return self.of_host(case.topology.host_of(role)?);
        }
        let first = case.topology.host_of(Role::Client);
        let hosts = case.topology.ranks.iter().filter_map(|rank| rank.host);
        let others: BTreeSet<u32> = hosts.filter(|host| Some(*host) != first).collect();
        known_least(others.into_iter().filter_map(|host| self.of_host(host)).collect())
    }

    fn of_host(&self, number: u32) -> Option<Result<RemoteClock, Fault>> {
        let number = number as usize;
        let stated = self.stated.get(number).copied().flatten();
        let (exchanges, cut) = self.running.get(number)?.as_ref()?.exchanges();
        Some(match (RemoteClock::of(exchanges, stated), cut) {
            (Ok(known), cut) => Ok(RemoteClock { cut, ..known }),
            (Err(_), Some(cut)) => Err(cut),
            (Err(none), None) => Err(none),
        })
    }

    /// What is known now of each host's clock; nothing is waited for.
    pub fn now(&self) -> Vec<Option<Model>> {
        let known = |(stated, running): (&Option<Offset>, &Option<Comparison>)| {
            let fitted = || Model::fit(&running.as_ref()?.so_far());
            stated.map(Model::stated).or_else(fitted)
        };
        self.stated.iter().zip(&self.running).map(known).collect()
    }

    /// Ends them; what each has cost.
    pub fn end(self) -> Vec<Option<ClockCost>> {
        let end = |one: Comparison| cost(&one.exchanges().0, one.end());
        self.running.into_iter().map(|one| one.map(end)).collect()
    }
}

/// The case for which a host's clock is compared, and whether that needs it: one-way times do;
/// rounds that begin together do so less well without. `of_all`: any case does.
fn compared_for(plan: &Plan, host: u32, of_all: bool) -> Option<(&Case, bool)> {
    let is_of_host = |case: &&Case| {
        case.topology.is_between_hosts()
            && case.topology.ranks.iter().any(|rank| rank.host == Some(host))
    };
    let needs = |case: &&Case| (of_all || case.profile().is_one_way) && is_of_host(case);
    let one_way = plan.cases.iter().find(needs);
    let needed = one_way.map(|case| (case, true));
    needed.or_else(|| together(plan).into_iter().find(is_of_host).map(|case| (case, false)))
}

/// Whether the interfaces that a case names are this host's too: not where neither end is here.
fn names_own_interface(plan: &Plan, case: &Case) -> bool {
    case.topology.host_of(Role::Client).is_none() || plan.pairs.is_some()
}

/// The cases of which rounds begin with those of others, or whose clients begin together.
fn together(plan: &Plan) -> Vec<&Case> {
    let several = plan.concurrent.iter().filter(|group| group.len() > 1).flatten();
    let several = several.filter_map(|number| plan.cases.get(*number as usize));
    several.chain(plan.cases.iter().filter(|case| has_several_clients(case))).collect()
}

/// What two clocks say of themselves, where they are kept right: how far the other's local time is
/// from this one's, by each one's own zero, and what both may be wrong by.
pub fn stated(
    host: &RemoteHost,
    time: &ChosenClock,
    environment: &Environment,
) -> Result<Option<Offset>, Fault> {
    let own = (time.base.epoch, &environment.discipline);
    let other = (host.probe.local.time.epoch, &host.probe.environment.discipline);
    stated_by(time.source, own, other)
}

/// The same of two epochs and what keeps the clocks right.
fn stated_by(
    source: Source,
    (own_epoch, own): (Ticks, &Discipline),
    (other_epoch, other): (Ticks, &Discipline),
) -> Result<Option<Offset>, Fault> {
    if source != Source::Ptp {
        return Ok(None);
    }
    let error = |discipline: &Discipline| discipline.stated_error_ns().map_err(Fault::Refused);
    let bound_ns = error(own)? + error(other)?;
    // Both tick in nanoseconds since 1970.
    Ok(Some(Offset { ns: (own_epoch - other_epoch).0 as f64, bound_ns }))
}

/// What is known of another host's clock at the end of a round.
pub struct RemoteClock {
    /// By which times are converted.
    pub model: Model,
    exchanges: Vec<Exchange>,
    /// What the exchanges say, where the model is what the clocks say of themselves.
    exchanged: Option<Model>,
    /// Why there are no exchanges after the round. What came before bounds the clock still, by more
    /// the longer ago it is.
    cut: Option<Fault>,
}

/// Of the clocks of several hosts the one that is known least when the last of all was heard; one
/// that is not known at all before all others. What cut one of them short is with it.
fn known_least(mut all: Vec<Result<RemoteClock, Fault>>) -> Option<Result<RemoteClock, Fault>> {
    let cut = all.iter().find_map(|one| one.as_ref().ok()?.cut.clone());
    let last = all.iter().flatten().map(RemoteClock::last_ns).fold(f64::NEG_INFINITY, f64::max);
    let bound = |one: &Result<RemoteClock, Fault>| {
        one.as_ref().map_or(f64::INFINITY, |one| one.model.offset_at(LocalNs(last)).bound_ns)
    };
    all.sort_by(|a, b| bound(a).total_cmp(&bound(b)));
    let least = all.pop()?;
    Some(least.map(|known| RemoteClock { cut: known.cut.or(cut), ..known }))
}

/// What is known of the clocks of both ends of a case.
#[derive(Default)]
pub struct KnownEnds {
    /// Of the client's and the server's; `None`: it is this host's, or not known.
    pub ends: [Option<RemoteClock>; 2],
    /// Why one was not compared, or not to the end of the round.
    pub fault: Option<Fault>,
    /// Whether both are known against this host's.
    pub are_compared: bool,
}

impl RemoteClock {
    fn of(exchanges: Vec<Exchange>, stated: Option<Offset>) -> Result<RemoteClock, Fault> {
        let none = || Fault::new("no clock exchange could be used");
        let fitted = Model::fit(&exchanges).ok_or_else(none)?;
        Ok(match stated.map(Model::stated) {
            Some(model) => RemoteClock { model, exchanges, exchanged: Some(fitted), cut: None },
            None => RemoteClock { model: fitted, exchanges, exchanged: None, cut: None },
        })
    }

    /// When the last exchange was heard.
    fn last_ns(&self) -> f64 {
        self.exchanges.iter().map(|one| one.heard.0).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The offset during a round, with the widest bound of its samples.
    fn during(&self, samples: &RoundSamples) -> Option<ClockOffset> {
        let received = samples.samples.iter().map(|sample| sample.receive_ns);
        let widest = |widest: Option<(f64, LocalNs)>, at: f64| {
            let bound = self.model.offset_at(LocalNs(at)).bound_ns;
            match widest {
                Some((before, _)) if before >= bound => widest,
                _ => Some((bound, LocalNs(at))),
            }
        };
        let (_, at) = received.filter(|at| at.is_finite()).fold(None, widest)?;
        let clock = ClockOffset::at(&self.model, &self.exchanges, at)?;
        let exchanged = self.exchanged.as_ref();
        Some(ClockOffset {
            by: if exchanged.is_some() { "ptp" } else { "exchanges" }.into(),
            exchanged: exchanged.map(|model| check::by_model(&self.model, model, at)),
            steps: exchanged.map_or(clock.steps, |model| model.steps.len() as u64),
            ..clock
        })
    }
}

/// The offset between both ends during a round, and what its messages say of it; `None` on one
/// clock.
pub fn offset_for_round(
    client: Option<&RemoteClock>,
    server: Option<&RemoteClock>,
    samples: &RoundSamples,
    messages: impl Iterator<Item = Message>,
) -> Option<ClockOffset> {
    let of = |known: Option<&RemoteClock>| known.and_then(|known| known.during(samples));
    let clock = match (of(client), of(server)) {
        (None, server) => server?,
        (Some(client), None) => ClockOffset {
            offset_ns: -client.offset_ns,
            drift_ppm: -client.drift_ppm,
            exchanged: client.exchanged.map(OffsetCheck::turned),
            ..client
        },
        (Some(client), Some(server)) => ClockOffset {
            offset_ns: server.offset_ns - client.offset_ns,
            bound_ns: server.bound_ns + client.bound_ns,
            drift_ppm: server.drift_ppm - client.drift_ppm,
            drift_bound_ppm: server.drift_bound_ppm + client.drift_bound_ppm,
            exchanges: server.exchanges.min(client.exchanges),
            shortest_round_trip_ns: server
                .shortest_round_trip_ns
                .max(client.shortest_round_trip_ns),
            steps: server.steps + client.steps,
            exchanged: server.exchanged.zip(client.exchanged).map(|(to, from)| to.less(from)),
            ..server
        },
    };
    let traffic = check::cross_check_with_traffic(clock.offset_ns, messages);
    Some(ClockOffset { traffic, ..clock })
}

/// The messages of a round that have arrived, each stamp in this host's time with what it may be
/// wrong by.
pub fn messages<'a>(
    client: &'a [Row],
    server: &'a [Row],
    times: Times<'a>,
) -> impl Iterator<Item = Message> + 'a {
    let at = |end: End<'_>, ticks: Ticks| {
        let local = end.time.local(ticks);
        let (at, bound_ns) = end.offset.map_or((local, 0.0), |offset| offset.here(local));
        BoundedTime { ns: at.0, bound_ns }
    };
    let both = client.iter().zip(server);
    both.filter(|(here, there)| here.submit.0 != 0 && there.receive.0 != 0).map(
        move |(here, there)| Message {
            sent: at(times.client, here.submit),
            reached: at(times.server, there.receive),
            heard: (here.receive.0 != 0).then(|| at(times.client, here.receive)),
        },
    )
}

/// What the exchanges took.
pub fn cost(exchanges: &[Exchange], cost: Cost) -> ClockCost {
    let ends = exchanges.first().zip(exchanges.last());
    let length_ns = ends.map_or(0.0, |(first, last)| last.heard - first.sent);
    let datagrams = cost.sent + cost.remote.map_or(0, |(datagrams, _)| datagrams);
    ClockCost {
        length_ns,
        exchanges: exchanges.len() as u64,
        datagrams,
        bytes: datagrams * LENGTH as u64,
        client_cpu_ns: cost.cpu_ns,
        server_cpu_ns: cost.remote.map(|(_, cpu_ns)| cpu_ns),
    }
}

#[cfg(test)]
mod tests;
