//! What is asked of load, and the cases that it becomes: one for each rate and number of clients,
//! and the probes beside them.

use super::spec::{Buffers, MOST_BUFFERS, Spec};
use super::{in_turn, probe};
use crate::oneway::refuse_one_sided;
use crate::options::{check_descriptors, check_watched};
use crate::prelude::*;
use wiregauge_base::units::counted;
use wiregauge_plan::topology::Wiring;

/// The pattern.
pub struct Load;

/// Clients of the closed loop with which a search begins: as many as there are buffers, so that
/// the server never waits for a request.
pub(super) const SATURATING: u32 = MOST_BUFFERS;
/// Time of a round where neither a time nor a count is given.
const TIME: Span = Span(200_000_000);
/// Bytes of an index for each object, about: key and place in a table that is at least half full.
const INDEX_BYTES: u64 = 34;

/// What was asked for: lists are cases.
#[derive(Clone, Debug, Default)]
pub struct LoadRequest {
    /// What all cases have.
    pub spec: Spec,
    /// Rates, each a case.
    pub rates: Vec<MessageRate>,
    /// Numbers of clients, each a case.
    pub clients: Vec<u32>,
    /// Connections of each thread of a client, each a case; none is as one.
    pub connections: Vec<u32>,
}

/// A request with the defaults.
pub fn request(asked: LoadRequest) -> Request {
    let (size, usual_bound) = (asked.spec.message(), Bound { count: None, time: Some(TIME) });
    Request { usual_bound, ..Request::new(&Load, asked, size) }
}

impl PatternSpec for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read_checked(json, Spec::check_numbers)
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        let is_whole = case.size == case.spec::<Spec>().message();
        ensure!(is_whole, "a message of load is as long as an object and its header");
        Ok(())
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let Spec { clients, probe, search, .. } = *case.spec();
        let usual = CaseProfile::of(case);
        // The points of a search are not known before it runs.
        let followed = search.is_none().then_some(Followed::RoundTrips { reply: None });
        CaseProfile {
            reads_payloads: true,
            queue_depth: MOST_BUFFERS,
            outruns_window: true,
            ending: match case.topology.endpoints_of_role(Role::Server) {
                0 | 1 => usual.ending,
                _ => Ending::ServersAfterClients,
            },
            cpus_before: u32::from(probe),
            clients: (clients > 0).then_some(clients),
            followed,
            ..usual
        }
    }

    fn connection_of(&self, case: &Case, _: u32) -> Box<dyn Fn(u64) -> u32> {
        in_turn::connections_of(case)
    }

    fn settings_of(&self, case: &Case, role: Role) -> Settings {
        let mut settings = case.settings.clone();
        // The pools are the server's queues, and the client's are as deep as without them.
        if let Some(pools) = case.spec::<Spec>().buffers.filter(|_| role == Role::Server) {
            let Buffers { transmit, receive } = pools;
            let depths =
                [("send-depth", transmit.to_string()), ("receive-depth", receive.to_string())];
            set_defaults(&mut settings, case.transport, depths);
        }
        settings
    }

    fn point(&self, case: &Case) -> Option<String> {
        let clients = case.spec::<Spec>().clients;
        let rate = case.schedule.rate().filter(|_| clients == 0);
        Some(match rate {
            Some(rate) => format!("at {}/s", rate.0.round()),
            None => format!("of {}", counted(clients, "client")),
        })
    }

    fn label(&self, case: &Case) -> String {
        let name = if case.spec::<Spec>().probe { "probe" } else { self.name() };
        let hosts = match case.topology.ranks_of(Role::Client).count() {
            1 => String::new(),
            several => format!(" {several} hosts"),
        };
        case.label_as(name, "") + &hosts
    }

    fn label_in(&self, plan: &Plan, number: usize) -> Option<String> {
        let case = plan.cases.get(number).filter(|case| case.spec::<Spec>().probe)?;
        Some(match probe::probed(plan, number) {
            Some(point) => {
                let beside = plan.cases.get(point).map(Case::label).unwrap_or_default();
                format!("{}, beside {beside}", case.label())
            }
            None => format!("{}, alone", case.label()),
        })
    }

    fn memory(&self, case: &Case, role: Role) -> u64 {
        let spec = case.spec::<Spec>();
        let objects = if role == Role::Server { spec.objects } else { 0 };
        objects.saturating_mul(spec.object_size.0.saturating_add(INDEX_BYTES))
    }

    /// The objects, each of which is written.
    fn least_memory(&self, case: &Case, role: Role) -> u64 {
        let spec = case.spec::<Spec>();
        let objects = if role == Role::Server { spec.objects } else { 0 };
        objects.saturating_mul(spec.object_size.0)
    }
}

/// Sets more, where the transport has those and they were not given.
fn set_defaults(settings: &mut Settings, over: TransportKind, defaults: [(&str, String); 2]) {
    for (name, text) in defaults.iter().filter(|(name, _)| over.has_setting(name)) {
        let set = settings.set_default(name, text);
        debug_assert!(set.is_ok(), "{set:?}");
    }
}

impl PatternRequest for LoadRequest {
    fn check(&self, request: &Request) -> Result<(), UsageError> {
        self.spec.check_numbers()?;
        request.refuse_stamps()?;
        refuse_one_sided(request)?;
        check_probe(self, request)?;
        let has_one = self.connections.iter().all(|all| *all == 1);
        ensure!(
            has_one || self.spec.probe_rate.is_none(),
            "--probe has a connection of its own: use it without --connections"
        );
        check_several(request)?;
        let Some(buffers) = self.spec.buffers else { return Ok(()) };
        let least = |transport: &TransportKind| transport.descriptor().least_receives;
        let needs_more = |one: &&TransportKind| buffers.receive < least(one);
        refuse_found(request.transports.iter().find(needs_more), |transport| {
            let (own, least) = (buffers.receive, least(transport));
            format!(
                "--rx-buffers {own} is too small for queues of {transport}: use {least} or more"
            )
        })?;
        refuse_found(request.waits.iter().find(|wait| **wait != Wait::Busy), |wait| {
            format!(
                "--tx-buffers and --rx-buffers measure polls, which --wait {} does not make: use \
                 --wait busy",
                wait.name()
            )
        })
    }

    fn has_many_clients(&self) -> bool {
        true
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        let has_several = has_several(request) || self.connections.iter().any(|all| *all > 1);
        check_watched(request, has_several, over)?;
        let threads = request.threads.iter().copied().max().unwrap_or(1);
        let of_server = threads.saturating_mul(request.place.client_hosts());
        check_descriptors(&self.connections, of_server, over)
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let connections = if self.connections.is_empty() { &[1][..] } else { &self.connections };
        connections.iter().flat_map(|each| self.cases_over(request, of, *each)).collect()
    }

    fn check_in_study(&self) -> Result<(), UsageError> {
        let has_rates = self.spec.search.is_none();
        ensure!(
            has_rates,
            "a study does not search rates: set rate, clients or trace of each [[load]]"
        );
        Ok(())
    }

    /// Adds probes: one beside each case, and one that runs alone, with which the others compare.
    fn add_beside(&self, so_far: &mut CasesSoFar, first: usize) {
        let Some(rate) = self.spec.probe_rate else { return };
        let CasesSoFar { cases, concurrent } = so_far;
        let points = first..cases.len();
        let alone = cases.get(first).map(|point| probe::probe(point, rate));
        cases.extend(alone);
        for point in points {
            concurrent.push(vec![point as u32, cases.len() as u32]);
            cases.push(probe::probe(&cases[point], rate));
        }
    }
}

impl LoadRequest {
    /// Returns the cases over this many connections of each thread.
    fn cases_over(&self, request: &Request, of: &Combination, each: u32) -> Vec<Case> {
        let at = |schedule: Schedule, spec: Spec| {
            let mut case = Request { schedule, ..request.clone() }.case(of, spec);
            case.topology = topology(of, spec.clients, each);
            if spec.buffers.is_some() {
                // Where the pools are the server's real queues each reply has a completion of its
                // own, and its buffer is in use until then, unless something else was asked for.
                let each = [("signal-every", "1".into()), ("inline", "off".into())];
                set_defaults(&mut case.settings, of.transport, each);
            }
            case
        };
        let spec = self.spec;
        if spec.search.is_some() {
            // It begins with what the server can do.
            return vec![at(Schedule::ClosedLoop, Spec { clients: SATURATING, ..spec })];
        }
        let of_clients =
            |clients: &u32| at(Schedule::ClosedLoop, Spec { clients: *clients, ..spec });
        let closed = self.clients.iter().map(of_clients);
        let open = self.rates.iter().map(|rate| at(request.schedule.at(*rate), spec));
        let cases: Vec<Case> = closed.chain(open).collect();
        if cases.is_empty() { vec![at(request.schedule, spec)] } else { cases }
    }
}

/// The clients and their server. A closed loop spreads its clients over the hosts first, then over
/// the threads of each: no thread is without a client.
fn topology(of: &Combination, clients: u32, each: u32) -> Topology {
    let most = if clients == 0 { u32::MAX } else { clients };
    let hosts = of.client_hosts.clamp(1, most);
    let threads = of.threads.clamp(1, most / hosts);
    match (hosts, threads, each) {
        (1, 1, 1) => Topology::pair(1),
        _ => {
            let mesh = Topology::client_server(threads, 1, Wiring::Mesh { each });
            mesh.with_clients(hosts)
        }
    }
}

/// Whether more than one thread sends to the server.
fn has_several(request: &Request) -> bool {
    request.place.client_hosts() > 1 || request.threads.iter().any(|threads| *threads > 1)
}

/// Refuses what only one client can do.
fn check_several(request: &Request) -> Result<(), UsageError> {
    let fits = request.trace.is_none() || !has_several(request);
    ensure!(fits, "--trace is the schedule of one client: use one host and --threads 1");
    Ok(())
}

/// Refuses a probe where it cannot run beside the load.
fn check_probe(asked: &LoadRequest, request: &Request) -> Result<(), UsageError> {
    if asked.spec.probe_rate.is_none() {
        return Ok(());
    }
    ensure!(
        request.count.is_none(),
        "--probe does not work with --count, since it runs as long as the load: use --time"
    );
    ensure!(!has_several(request), "--probe runs beside one client: use one host and --threads 1");
    let is_one = request.place.pairs().is_none() && request.place.rails.is_none();
    ensure!(
        is_one,
        "--probe does not work with --all-pairs, --bisection and --rails: it runs beside one load"
    );
    refuse_found(request.simulated(), |simulated| {
        format!("{simulated} does not support --probe, since nothing runs at the same time there")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::Bytes;

    /// Hosts and threads of the clients of each case.
    fn spread(hosts: u32, threads: u32, clients: &[u32]) -> Vec<(usize, u32)> {
        let host = |number| {
            let host = format!("node{number}");
            Some(plan::HostSpec { host, ..plan::HostSpec::default() })
        };
        let asked = LoadRequest { clients: clients.to_vec(), ..LoadRequest::default() };
        let mut request = request(asked);
        request.transports =
            TransportKind::ALL.iter().filter(|one| one.name() == "tcp").copied().collect();
        request.threads = vec![threads];
        request.place = plan::Place::clients((0..hosts).map(host).collect(), None);
        let of = |case: Case| {
            let mut clients = case.topology.ranks_of(Role::Client).map(|rank| rank.threads);
            let first = clients.next().unwrap();
            assert!(case.topology.host_of(Role::Server).is_none());
            (1 + clients.count(), first)
        };
        request.plan().unwrap().cases.into_iter().map(of).collect()
    }

    #[test]
    fn clients_are_spread_over_the_hosts_first_and_then_over_their_threads() {
        assert_eq!(
            spread(3, 2, &[1, 2, 3, 5, 6, 64]),
            [(1, 1), (2, 1), (3, 1), (3, 1), (3, 2), (3, 2)]
        );
        assert_eq!(spread(2, 4, &[]), [(2, 4)], "a schedule has all of them");
    }

    #[test]
    fn over_verbs_the_pools_are_the_queues_of_the_server_alone() {
        let pools = |receive, signal| {
            let buffers = Some(Buffers { transmit: 8, receive });
            let spec = Spec { buffers, ..Spec::default() };
            let mut request = request(LoadRequest { spec, ..LoadRequest::default() });
            request.transports = vec![TransportKind::Verbs];
            if let Some(every) = signal {
                request.settings.set("signal-every", every).unwrap();
            }
            request.plan()
        };
        let case = pools(24, None).unwrap().cases.remove(0);
        let ends = [Role::Client, Role::Server];
        let [client, server] = ends.map(|role| case.pattern.settings_of(&case, role));
        let depths = |end: &Settings| (end.count("send-depth"), end.count("receive-depth"));
        assert_eq!(depths(&server), (Some(8), Some(24)));
        assert_eq!(depths(&client), (None, None));
        // Each reply completes by itself, and its buffer is in use until then.
        for end in [client, server] {
            assert_eq!((end.text("signal-every"), end.text("inline")), (Some("1"), Some("off")));
        }
        let typed = pools(24, Some("4")).unwrap().cases.remove(0);
        assert_eq!(typed.settings.text("signal-every"), Some("4"));
        assert!(pools(1, None).unwrap_err().0.contains("use 2 or more"));
        assert!(pools(2, None).is_ok());
    }

    fn with_probe() -> Request {
        let asked = LoadRequest {
            spec: Spec {
                object_size: Bytes(1000),
                probe_rate: Some(MessageRate(500.0)),
                ..Spec::default()
            },
            rates: vec![MessageRate(1e4), MessageRate(1e5)],
            ..LoadRequest::default()
        };
        let mut request = request(asked);
        request.schedule = Schedule::Periodic { rate: MessageRate(1e4) };
        request.time = Some(Span(2_000_000_000));
        request
    }

    #[test]
    fn each_point_has_a_probe_of_small_requests_at_the_same_time_and_one_is_alone() {
        let plan = with_probe().plan().unwrap();
        assert_eq!((plan.cases.len(), &*plan.concurrent), (5, &[vec![0, 3], vec![1, 4]][..]));
        assert_eq!([2, 3, 4].map(|probe| probe::probed(&plan, probe)), [None, Some(0), Some(1)]);
        let probes: Vec<&Case> =
            plan.cases.iter().filter(|case| case.spec::<Spec>().probe).collect();
        for probe in probes {
            assert_eq!((probe.size, probe.bound.time), (Bytes(116), Some(Span(2_000_000_000))));
            assert_eq!(probe.schedule, Schedule::Poisson { rate: MessageRate(500.0) });
            assert_eq!(probe.warmup, 100);
        }
        assert_eq!(plan.cpus_at_once(), 2);
        let labels: Vec<String> = (0..5).map(|case| plan.label(case)).collect();
        assert_eq!(labels[2], "probe tcp busy 116 B at 500/s, alone");
        assert_eq!(labels[4], format!("probe tcp busy 116 B at 500/s, beside {}", labels[1]));
    }

    #[test]
    fn a_probe_that_cannot_be_beside_a_load_is_refused() {
        let refused = |request: Request| request.plan().unwrap_err().0;
        let counted = Request { count: Some(10), time: None, ..with_probe() };
        assert!(refused(counted).contains("use --time"));
        let simulated = Request { transports: vec![TransportKind::Synthetic], ..with_probe() };
        assert!(refused(simulated).contains("synthetic does not support --probe"));
    }
}
