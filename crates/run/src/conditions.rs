//! What is the same for all rounds of a plan: hosts, CPUs and clocks.

mod residents;

use super::RunContext;
use residents::Residents;
use wiregauge_base::options::each_once;
use wiregauge_base::units::{InjectedClockError, Span};
use wiregauge_clock::exchange::Local;
use wiregauge_clock::offset::Model;
use wiregauge_clock::{LocalNs, Ticks};
use wiregauge_host::CpuPair;
use wiregauge_plan::topology::Rank;
use wiregauge_plan::{Case, HostPair, Rails};
use wiregauge_remote::host::RemoteHost;
use wiregauge_remote::program::{AgentProgram, Programs};
use wiregauge_sample::join::End;
use wiregauge_transport::Role;

/// Messages of the null transport before each round.
pub const OVERHEAD_MESSAGES: u32 = 2000;

/// What is the same for all rounds.
pub struct Conditions<'a> {
    /// What the run was given.
    pub context: &'a RunContext<'a>,
    /// A random number of the run.
    pub run: u64,
    /// The program that is started as an agent on this host.
    pub program: AgentProgram,
    /// Identities of those that were started by a path.
    pub programs: Programs,
    /// This host's CPUs of both roles, a pair per thread where there are enough.
    pub cpus: Vec<CpuPair>,
    /// The timestamp clock.
    pub clock: Local,
    /// Time of day at its epoch, nanoseconds since 1970.
    pub epoch_of_day_ns: u64,
    /// Error that a test adds to the remote clocks.
    pub injected_clock_error: Option<InjectedClockError>,
    /// The rails of the plan, each with CPUs of its own where they run at the same time.
    pub rails: Option<Rails>,
    /// Duration of the CPU noise measurement before a round.
    pub noise: Span,
    /// Messages of the null transport before a round.
    pub overhead_messages: u32,
    /// The remote clocks against this one, if rounds start at one instant.
    pub clocks: Vec<Option<Model>>,
    /// Agents that stay for several rounds.
    pub residents: Residents,
}

impl<'a> Conditions<'a> {
    /// The remote host of this number; `None`: this host.
    pub fn remote_host(&self, number: Option<u32>) -> Option<&'a RemoteHost> {
        self.context.hosts.get(number? as usize)
    }

    /// The words of the command that starts all ranks of a case, where one does. Ranks of a job
    /// were started by its launcher.
    pub fn launcher(&self, case: &Case) -> Option<Vec<String>> {
        let is_local = case.topology.ranks.iter().all(|rank| rank.host.is_none());
        let launcher = case.transport.descriptor().launcher.filter(|_| is_local)?;
        Some(launcher(&case.settings))
    }

    /// Whether the rounds of a case share the processes that the launcher of this job has started:
    /// its transport makes a process a rank once and for all.
    pub fn shares_processes(&self, case: &Case) -> bool {
        let is_of_job = |rank: &Rank| {
            self.remote_host(rank.host).is_some_and(|host| host.session.is_rank_of_job())
        };
        case.transport.descriptor().launcher.is_some() && case.topology.ranks.iter().any(is_of_job)
    }

    /// Whether no round of a case can begin any more: the processes that its rounds share are gone.
    pub fn has_lost_launch(&self, case: &Case) -> bool {
        self.residents.are_lost() && self.shares_processes(case)
    }

    /// What is said of cases that wait for such a round; `None`: none does.
    pub fn lost_with_launch<'c>(&self, waiting: impl Iterator<Item = &'c Case>) -> Option<String> {
        let cases = match waiting.filter(|case| self.has_lost_launch(case)).count() {
            0 => return None,
            1 => "1 case was".to_owned(),
            many => format!("{many} cases were"),
        };
        Some(format!(
            "{cases} not measured to the end: the ranks of this launch ended with a round, and a \
             process is a rank only once"
        ))
    }

    /// The clock of a host against this one's; `None`: not known.
    pub fn clock_of(&self, host: Option<u32>) -> Option<End<'_>> {
        let Some(number) = host else {
            return Some(End { time: &self.clock.time, offset: None });
        };
        let offset = Some(self.clocks.get(number as usize)?.as_ref()?);
        Some(End { time: &self.remote_host(host)?.probe.local.time, offset })
    }

    /// How far a host's clock may be from this one's at an instant; infinite where it is not known.
    pub fn clock_bound_ns(&self, host: Option<u32>, at: Option<LocalNs>) -> f64 {
        if host.is_none() {
            return 0.0;
        }
        let offset = self.clock_of(host).and_then(|end| end.offset);
        offset.zip(at).map_or(f64::INFINITY, |(model, at)| model.offset_at(at).bound_ns)
    }

    /// The reading of a host's clock at an instant of this host's.
    pub fn remote_ticks_at(&self, host: Option<u32>, at: LocalNs) -> Option<Ticks> {
        let end = self.clock_of(host)?;
        let offset_ns = end.offset.map_or(0.0, |model| model.offset_at(at).ns);
        Some(end.time.ticks_at(LocalNs(at.0 + offset_ns)))
    }

    /// The CPUs of a case's roles, a pair per thread where there are enough; of several clients
    /// those of the first.
    pub fn cpus_of(&self, case: &Case) -> Vec<CpuPair> {
        self.pairs_on(case, case.topology.hosts())
    }

    /// The CPUs of the threads of one of its ranks; fewer where there are not enough. The nodes of
    /// a host take its CPUs in turns.
    pub fn cpus_of_rank(&self, case: &Case, number: usize) -> Vec<u32> {
        let Some(rank) = case.topology.ranks.get(number) else { return Vec::new() };
        if rank.role == Role::Node {
            let pairs = self.pairs_on(case, HostPair { client: rank.host, server: rank.host });
            let mut cpus: Vec<u32> = pairs.iter().map(|pair| pair.client).collect();
            cpus.extend(pairs.iter().map(|pair| pair.server));
            let mut cpus = each_once(cpus);
            let places = cpus.len().max(1);
            cpus.rotate_left(case.topology.threads_before_on_host(number) as usize % places);
            return cpus;
        }
        let first = case.topology.hosts();
        let hosts = rank.role.pick(HostPair { client: rank.host, ..first }, first);
        let pairs = self.pairs_on(case, hosts).into_iter();
        pairs.map(|pair| rank.role.pick(pair.client, pair.server)).collect()
    }

    /// A pair for each thread of the role that has the most, in the order of its ranks: each
    /// client's CPUs are of its own host.
    pub fn cpus_of_threads(&self, case: &Case) -> Vec<CpuPair> {
        let of_rank = |(number, rank): (usize, &Rank)| {
            let cpus = self.cpus_of_rank(case, number);
            cpus.into_iter().cycle().take(rank.threads as usize).collect::<Vec<_>>()
        };
        let ranks = || case.topology.ranks.iter().enumerate();
        let of = |role: Role| {
            let own = ranks().filter(move |(_, rank)| rank.role.side() == role);
            own.flat_map(of_rank).collect::<Vec<_>>()
        };
        let (clients, servers) = (of(Role::Client), of(Role::Server));
        // Nodes have no other side.
        let servers = if case.topology.has_nodes() { clients.clone() } else { servers };
        let most = clients.len().max(servers.len());
        let both = clients.iter().cycle().zip(servers.iter().cycle());
        both.take(most).map(|(&client, &server)| CpuPair { client, server }).collect()
    }

    /// The CPUs of a role on this host.
    fn cpus_here(&self, role: Role) -> Vec<u32> {
        self.cpus.iter().map(|pair| role.pick(pair.client, pair.server)).collect()
    }

    /// The CPUs of a case's roles on these hosts.
    fn pairs_on(&self, case: &Case, hosts: HostPair) -> Vec<CpuPair> {
        let host = |role: Role| self.remote_host(role.pick(hosts.client, hosts.server));
        let of = |role: Role| match host(role) {
            Some(host) => host.probe.cpus.clone(),
            None => self.cpus_here(role),
        };
        let mut clients = of(Role::Client);
        let servers = of(Role::Server);
        // Two hosts that are this machine have each chosen its CPUs for servers.
        let are_here = [Role::Client, Role::Server]
            .iter()
            .all(|role| host(*role).is_some_and(RemoteHost::shares_kernel));
        if are_here && clients == servers {
            clients = self.cpus_here(Role::Client);
        }
        // The end with fewer reuses them in turn.
        let both = clients.iter().cycle().zip(servers.iter().cycle());
        let pair = |(&client, &server)| CpuPair { client, server };
        let mut pairs: Vec<_> = both.map(pair).take(clients.len().max(servers.len())).collect();
        // The first ones belong to what runs beside it, and to the rails before.
        let rail = self.rails.as_ref().filter(|rails| rails.at_once() > 1);
        let rail = rail.and_then(|rails| rails.of_case(case)).unwrap_or(0);
        let before = case.cpus_before() + rail * case.topology.most_threads();
        let places = pairs.len().max(1);
        pairs.rotate_left(before as usize % places);
        pairs
    }
}
