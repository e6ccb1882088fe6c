//! What stands beside all runs: the instrument's own error, the noise, what weakens them all.

use super::RunContext;
use std::collections::{BTreeMap, BTreeSet};
use wiregauge_analysis::overhead;
use wiregauge_analysis::pattern::RunSoFar;
use wiregauge_base::wall_clock::Started;
use wiregauge_base::warning::Warning;
use wiregauge_clock::ChosenClock;
use wiregauge_figures::record::schema::{
    ClockCost, OtherHost, PlanRecord, Record, RecordedWarning, SCHEMA, VERSION,
};
use wiregauge_host::{Environment, Noise, TOOL_VERSION, format_cpus, interface_with};
use wiregauge_plan::{Case, Plan};
use wiregauge_remote::host::RemoteHost;
use wiregauge_remote::program::identity;

/// A core that loses more than this share of its time to gaps is noisy.
const NOISE_LIMIT: f64 = 0.01;

/// Seconds by which the wall clock may go differently from the steady one without a note: a time
/// daemon slews it by 500 ppm at most, and steps it from a tenth of a second on.
const WALL_CLOCK_ALLOWED_S: f64 = 1.0;

/// A record without runs. The clock is calibrated over the time until now.
pub fn record(
    plan: &Plan,
    context: &RunContext<'_>,
    time: &ChosenClock,
    environment: &Environment,
    started: Started,
) -> Record {
    let injected = plan.injected_clock_error.map(|error| {
        RecordedWarning::from(&Warning::InjectedClockError { is_remote: error.is_remote() })
    });
    Record {
        schema: SCHEMA.into(),
        sha256: String::new(),
        version: VERSION,
        tool: TOOL_VERSION.into(),
        program_sha256: identity().map(|own| own.sha256.clone()).unwrap_or_default(),
        command: context.command.clone(),
        started: started.time().to_string(),
        finished: started.time_now().to_string(),
        complete: true,
        faults: Vec::new(),
        plan: Box::new(PlanRecord::from(plan)),
        clock: time.report_over_run(),
        instrument: overhead::instrument(&[], time.report.resolution_ns),
        noise: Vec::new(),
        runs: Vec::new(),
        unavailable: context.unavailable.clone(),
        warnings: injected.into_iter().collect(),
        environment: Box::new(environment.clone()),
        hosts: Vec::new(),
        pairs: None,
        paths: Vec::new(),
        impacts: Vec::new(),
        clocks: Vec::new(),
        together: None,
        explanation: None,
        tails: Vec::new(),
        samples: None,
    }
}

/// The noise of each measuring CPU, over all rounds.
pub fn noise<'a>(seen: impl Iterator<Item = &'a Noise>) -> Vec<Noise> {
    let mut by_cpu: BTreeMap<u32, Noise> = BTreeMap::new();
    for noise in seen {
        by_cpu.entry(noise.cpu).and_modify(|all| all.merge(noise)).or_insert_with(|| noise.clone());
    }
    by_cpu.into_values().collect()
}

/// The record without rounds, as the journal begins with it: the other hosts are known already.
pub fn head(context: &RunContext<'_>, base: Record) -> Record {
    let hosts = context.hosts.iter().map(|host| other_host(host, Vec::new(), None)).collect();
    Record { hosts, ..base }
}

/// What the record says of another host.
pub fn other_host(
    host: &RemoteHost,
    noise: Vec<Noise>,
    clock_cost: Option<ClockCost>,
) -> OtherHost {
    OtherHost {
        name: host.session.host().to_string(),
        address: host.probe.address.map(|address| address.to_string()),
        environment: Box::new(host.probe.environment.clone()),
        clock: host.probe.clock.clone(),
        noise,
        clock_cost,
    }
}

/// What weakens the whole record; `cpus` are the measuring ones of this host.
pub fn warnings(
    cpus: &[u32],
    one_cpu: bool,
    environment: &Environment,
    noise: &[Noise],
) -> Vec<RecordedWarning> {
    let cpu = cpus.first().copied().unwrap_or(0);
    let mut found: Vec<Warning> = one_cpu.then_some(Warning::OneCpu { cpu }).into_iter().collect();
    found.extend(environment.warnings(cpus));
    found.extend(noisy(noise));
    RecordedWarning::each_once(&found)
}

/// Other runs on these measuring CPUs of a host.
pub fn shared_cpus(shared: &BTreeSet<u32>) -> Option<Warning> {
    let all: Vec<u32> = shared.iter().copied().collect();
    (!all.is_empty()).then(|| Warning::SharedCpus { cpus: format_cpus(&all) })
}

/// Returns a note if the wall clock was set since.
pub fn wall_clock_set(started: &Started) -> Option<RecordedWarning> {
    let by_s = started.set_by_s();
    let is_set = by_s.abs() > WALL_CLOCK_ALLOWED_S;
    is_set.then(|| RecordedWarning::from(&Warning::WallClockSet { by_s }))
}

/// Cores that lose too much of their time.
fn noisy(noise: &[Noise]) -> impl Iterator<Item = Warning> {
    let observed = noise.iter().filter(|noise| noise.observed_ns > 0.0);
    observed.filter_map(|noise| {
        let share = noise.share();
        let warning = Warning::NoisyCore { cpu: noise.cpu, share, longest_ns: noise.longest_ns };
        (share > NOISE_LIMIT).then_some(warning)
    })
}

/// Warns of cores that lose too much of their time, where nothing else was measured.
pub fn warnings_of_noise(noise: &[Noise]) -> impl Iterator<Item = RecordedWarning> {
    noisy(noise).map(|warning| RecordedWarning::from(&warning))
}

/// What weakens the record at the other hosts.
pub fn warnings_of_hosts(
    plan: &Plan,
    hosts: &[OtherHost],
    runs: &[RunSoFar],
) -> Vec<RecordedWarning> {
    let of_host = |(number, host): (u32, &OtherHost)| {
        let shared = runs.iter().flat_map(|run| run.shared_at(number)).collect();
        warnings_there(host, &shared)
    };
    // Ranks that a launcher starts are not told an interface.
    let placed = |case: &&Case| case.transport.descriptor().launcher.is_none();
    let cases = plan.cases.iter().filter(placed);
    let ends = cases.map(|case| case.topology.ranks.iter().map(|rank| rank.host));
    let own = |host: u32| own_interface(hosts.get(host as usize)?);
    (0..).zip(hosts).flat_map(of_host).chain(not_on_the_wire(ends, own)).collect()
}

/// What weakens the record at another host; other runs measured on its CPUs `shared`.
fn warnings_there(host: &OtherHost, shared: &BTreeSet<u32>) -> Vec<RecordedWarning> {
    let cpus: Vec<u32> = host.environment.cpus.iter().map(|state| state.cpu).collect();
    let found = host.environment.warnings(&cpus).into_iter().chain(noisy(&host.noise));
    let found = found.chain(shared_cpus(shared));
    let on_it = |warning: Warning| RecordedWarning::on_host(&warning, &host.name);
    found.map(on_it).collect()
}

/// This host's interface that has the address of another host of the plan: it is no other.
fn own_interface(host: &OtherHost) -> Option<String> {
    let address = host.address.as_ref().and_then(|address| address.parse().ok());
    address.and_then(interface_with).map(|interface| interface.name)
}

/// The runs whose ends are all on this host though a host was named. `interface_of` gives this
/// host's interface with the address of a named host.
fn not_on_the_wire(
    runs: impl Iterator<Item = impl Iterator<Item = Option<u32>>>,
    interface_of: impl Fn(u32) -> Option<String>,
) -> Vec<RecordedWarning> {
    let interface = |ends: _| {
        // Of ends on this host without a name the transport's interface decides.
        let named: Option<Vec<String>> = Iterator::flatten(ends).map(&interface_of).collect();
        named?.pop()
    };
    let found = runs.filter_map(interface).map(|interface| Warning::NotOnTheWire { interface });
    RecordedWarning::each_once(&found.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_off_the_wire_where_both_of_its_ends_are_here() {
        // Host 0 is this one.
        let interface_of = |host| (host == 0).then(|| "eth0".to_string());
        let of = |ends: &[Option<u32>]| {
            not_on_the_wire([ends.iter().copied()].into_iter(), interface_of).len()
        };
        let warned = |client, server| of(&[client, server]);
        assert_eq!((warned(None, Some(0)), warned(Some(0), Some(0))), (1, 1));
        // The pairs of a plan that names the controller's host among others.
        assert_eq!((warned(Some(0), Some(1)), warned(Some(1), Some(0))), (0, 0));
        assert_eq!(
            (warned(None, Some(1)), warned(Some(1), Some(2)), warned(None, None)),
            (0, 0, 0)
        );
        // Nodes, of which this host is the first.
        assert_eq!((of(&[Some(0), Some(1), Some(2)]), of(&[Some(0); 3])), (0, 1));
        let all = [[None, Some(0)].into_iter(), [None, Some(0)].into_iter()];
        assert_eq!(not_on_the_wire(all.into_iter(), interface_of).len(), 1, "said once");
    }

    fn noise_of(cpu: u32, observed_ns: f64, lost_ns: f64) -> Noise {
        Noise { cpu, observed_ns, lost_ns, longest_ns: lost_ns, ..Noise::default() }
    }

    fn kinds(found: &[RecordedWarning]) -> Vec<&str> {
        found.iter().map(|warning| warning.kind.as_str()).collect()
    }

    #[test]
    fn the_noise_of_a_cpu_is_that_of_all_rounds() {
        let seen = [noise_of(3, 1e9, 2e6), noise_of(1, 1e9, 0.0), noise_of(3, 2e9, 4e6)];
        let all = noise(seen.iter());
        let found: Vec<_> = all.iter().map(|one| (one.cpu, one.observed_ns, one.lost_ns)).collect();
        assert_eq!(found, [(1, 1e9, 0.0), (3, 3e9, 6e6)]);
        assert_eq!(all[1].longest_ns, 4e6);
    }

    #[test]
    fn a_cpu_that_loses_more_than_a_hundredth_of_its_time_is_noisy() {
        let share = |observed_ns, lost_ns| {
            let found = noisy(&[noise_of(4, observed_ns, lost_ns)]).next();
            found.map(|warning| match warning {
                Warning::NoisyCore { cpu: 4, share, .. } => share,
                _ => panic!("{warning:?}"),
            })
        };
        assert_eq!((share(2e9, 4e7), share(1e9, 1e7)), (Some(0.02), None));
        assert_eq!(share(0.0, 5.0), None, "nothing was observed");
    }

    #[test]
    fn a_record_is_weakened_by_one_cpu_its_machine_and_its_noise() {
        let environment = Environment::default();
        let own = warnings(&[7], false, &environment, &[]);
        let found = warnings(&[7], true, &environment, &[noise_of(7, 1e9, 1e8)]);
        let [first, machine @ .., last] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((first.kind.as_str(), last.kind.as_str()), ("one_cpu", "noisy_core"));
        assert_eq!(machine, own);
        assert_eq!(first.sentence, RecordedWarning::from(&Warning::OneCpu { cpu: 7 }).sentence);
    }

    #[test]
    fn what_weakens_the_record_at_another_host_names_it() {
        let noise = vec![noise_of(7, 1e9, 1e8)];
        let host = OtherHost { name: "node07".into(), noise, ..OtherHost::default() };
        let shared = BTreeSet::from([5, 6]);
        let found = warnings_there(&host, &shared);
        let of = |warning| RecordedWarning::on_host(&warning, "node07");
        let noisy = Warning::NoisyCore { cpu: 7, share: 0.1, longest_ns: 1e8 };
        assert!(found.contains(&of(noisy)), "{found:?}");
        assert!(found.contains(&of(Warning::SharedCpus { cpus: "5-6".into() })), "{found:?}");
        let alone = warnings_there(&host, &BTreeSet::new());
        assert_eq!(kinds(&found).len(), kinds(&alone).len() + 1, "{alone:?}");
    }

    #[test]
    fn a_host_that_was_named_by_an_address_of_this_one_is_no_other() {
        let of = |address: Option<&str>| {
            let address = address.map(str::to_string);
            own_interface(&OtherHost { address, ..OtherHost::default() })
        };
        assert_eq!(of(Some("127.0.0.1")).as_deref(), Some("lo"));
        // Of the block for documents (RFC 5737), which no host has.
        assert_eq!((of(Some("192.0.2.1")), of(None)), (None, None));
    }

    #[test]
    fn what_weakens_the_record_is_looked_for_at_each_host() {
        let plan = wiregauge_patterns::latency::request(Default::default()).plan().unwrap();
        let host = |name: &str, noise| OtherHost { name: name.into(), noise, ..Default::default() };
        let hosts = [host("node07", Vec::new()), host("node08", vec![noise_of(7, 1e9, 1e8)])];
        let noisy = Warning::NoisyCore { cpu: 7, share: 0.1, longest_ns: 1e8 };
        let found = warnings_of_hosts(&plan, &hosts, &[]);
        assert!(found.contains(&RecordedWarning::on_host(&noisy, "node08")), "{found:?}");
        assert!(warnings_of_hosts(&plan, &[], &[]).is_empty());
    }
}
