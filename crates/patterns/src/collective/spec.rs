//! The options and the specification of collective operations.

use super::contents::NUMBER;
use crate::prelude::*;
use wiregauge_base::options::named_enum;
use wiregauge_plan::topology::MAX_PEERS;
use wiregauge_transport::collectives::CollectiveOperation;

/// The pattern.
pub struct Collective;

named_enum! {
    /// How the ranks come to enter an operation together.
    #[derive(Default)]
    pub enum Sync {
        /// At an instant of common time that they agree on before.
        #[default]
        Window = "window",
        /// After a barrier; each rank times the operation by its own clock.
        Barrier = "barrier",
    }
}

/// The specification of a case.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// What the ranks do.
    pub operation: CollectiveOperation,
    /// Whether it is started and waited for, every second time with computing between.
    pub nonblocking: bool,
    /// How long ranks compute: before a blocking operation, or between the start and the end of a
    /// non-blocking one (0: as long as the operation takes).
    pub compute: Span,
    /// How they come to enter it together.
    pub sync: Sync,
    /// How late a rank may enter it.
    pub max_late: Span,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec {
            operation: CollectiveOperation::default(),
            nonblocking: false,
            compute: Span(0),
            sync: Sync::default(),
            max_late: MAX_LATE,
        }
    }
}

/// Ranks where nothing else is asked for: more of them than CPUs show the scheduler.
const RANKS: u32 = 2;
/// Most ranks: each is connected to every other.
const MAX_RANKS: u64 = MAX_PEERS as u64 + 1;
/// Time of a round where nothing else is asked for.
const TIME: Span = Span(500_000_000);
/// How late a rank may enter where nothing else is asked for: several times what the last look at
/// the clock takes.
const MAX_LATE: Span = Span(1000);
/// Longest computing between two operations.
const MOST_COMPUTE: Span = Span(100_000_000);

impl Spec {
    /// The operation by the name of its call.
    pub fn name(&self) -> String {
        let letter = if self.nonblocking { "i" } else { "" };
        format!("{letter}{}", self.operation.name())
    }

    fn check(&self) -> Result<(), UsageError> {
        let name = self.operation.name();
        let fits = !self.nonblocking || self.operation.is_one_call();
        ensure!(fits, "--nonblocking: {name} is two calls: use reduce and bcast");
        let fits = !self.nonblocking || self.sync == Sync::Window;
        ensure!(fits, "--nonblocking is measured on common time: leave --sync barrier out");
        ensure!(self.compute <= MOST_COMPUTE, "--compute: use at most {MOST_COMPUTE}");
        ensure!(self.max_late.0 > 0, "--max-late: use more than 0, such as 1us");
        Ok(())
    }
}

/// What was asked for: lists are cases.
#[derive(Clone, Debug, Default)]
pub struct CollectiveRequest {
    /// What all cases have.
    pub spec: Spec,
    /// The operations.
    pub operations: Vec<CollectiveOperation>,
    /// Numbers of ranks on this host.
    pub ranks: Vec<u32>,
}

/// What was asked for by default, over the first transport that has such operations.
pub fn request(asked: CollectiveRequest) -> Request {
    let carries = |one: &&TransportKind| Collective.is_carried_by(one.descriptor());
    let over = TransportKind::ALL.iter().find(carries).copied().unwrap_or_default();
    Request {
        usual_bound: Bound { count: None, time: Some(TIME) },
        is_directed: false,
        transports: vec![over],
        ..Request::new(&Collective, asked, Bytes(NUMBER as u64))
    }
}

impl CollectiveRequest {
    /// Numbers of ranks: the hosts, where they are named.
    fn ranks(&self, request: &Request) -> Vec<u32> {
        match request.place.nodes.len() as u32 {
            0 => self.ranks.clone(),
            hosts => vec![hosts],
        }
    }
}

impl PatternRequest for CollectiveRequest {
    fn has_nodes(&self) -> bool {
        true
    }

    fn check(&self, request: &Request) -> Result<(), UsageError> {
        request.refuse_stamps()?;
        request.refuse_schedule()?;
        within("--nodes", self.ranks(request), 2, MAX_RANKS)?;
        let threads = request.threads.iter().any(|threads| *threads > 1);
        ensure!(!threads, "a rank of collective has one thread: use --nodes for more processes");
        for &operation in &self.operations {
            Spec { operation, ..self.spec }.check()?;
            let odd = request.sizes.iter().find(|size| !size.0.is_multiple_of(NUMBER as u64));
            refuse_found(odd.filter(|_| operation.adds()), |size| {
                let name = operation.name();
                format!("--size {size}: {name} adds numbers of {NUMBER} B: use a multiple of it")
            })?;
        }
        Ok(())
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let first = request.sizes.first() == Some(&of.size);
        let mut cases = Vec::new();
        for ranks in self.ranks(request) {
            for &operation in &self.operations {
                // A barrier has no size: it is measured once.
                if !operation.has_payload() && !first {
                    continue;
                }
                let size = if operation.has_payload() { of.size } else { Bytes(1) };
                let spec = Spec { operation, ..self.spec };
                let mut case = request.case(&Combination { size, ..*of }, spec);
                case.topology = Topology::nodes(ranks);
                case.warmup = if case.bound.count.is_some() { case.warmup } else { 0 };
                cases.push(case);
            }
        }
        cases
    }
}

impl PatternSpec for Collective {
    fn name(&self) -> &'static str {
        "collective"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read_checked(json, Spec::check)
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        let nodes = case.topology.ranks.len() as u64;
        let fits = (2..=MAX_RANKS).contains(&nodes) && case.topology.has_nodes();
        ensure!(fits, "a collective operation has 2 to {MAX_RANKS} ranks");
        let one = case.topology.ranks.iter().all(|rank| rank.threads == 1);
        ensure!(one, "a rank of a collective operation has one thread");
        Ok(())
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.carries(Traffic::Collective)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        CaseProfile {
            traffic: Traffic::Collective,
            ending: Ending::EachTellsOther,
            is_one_sided: false,
            is_one_way: true,
            ..CaseProfile::of(case)
        }
    }

    fn point(&self, case: &Case) -> Option<String> {
        let (spec, ranks) = (case.spec::<Spec>(), case.topology.ranks.len());
        let with = match spec.compute {
            Span(0) => String::new(),
            compute => format!(" with {compute} of work"),
        };
        let after = if spec.sync == Sync::Barrier { " after a barrier" } else { "" };
        Some(format!("{} of {ranks} ranks{with}{after}", spec.name()))
    }

    fn label(&self, case: &Case) -> String {
        let point = self.point(case).unwrap_or_default();
        let size = match case.spec::<Spec>().operation.has_payload() {
            true => format!(" {}", case.size),
            false => String::new(),
        };
        format!("collective {} {}{size} {point}", case.transport, case.wait.name())
    }

    fn memory(&self, case: &Case, _: Role) -> u64 {
        // Input and output, a block for each rank.
        case.size.0.saturating_mul(2).saturating_mul(case.topology.ranks.len() as u64)
    }

    fn least_memory(&self, case: &Case, _: Role) -> u64 {
        let (gives, gets) = case.spec::<Spec>().operation.blocks(case.topology.ranks.len());
        case.size.0.saturating_mul((gives + gets) as u64)
    }
}

const OPTIONS: OptionTable = &[
    SIZE.default("8B"),
    OptionDef::choice::<CollectiveOperation>("collective", "Operations of all ranks")
        .list()
        .default("allreduce")
        .common(),
    OptionDef::count("nodes", "Ranks, each a process of this host, or a list")
        .limits(2, MAX_RANKS)
        .list()
        .default_note("2, or the hosts")
        .excludes(&["hosts", "hosts-file"])
        .common(),
    OptionDef::flag("nonblocking", "Use the non-blocking forms and measure how much overlaps")
        .common(),
    OptionDef::time(
        "compute",
        "Compute so long before each operation, or, with --nonblocking, until it is waited for",
    )
    .default_note("0; with --nonblocking as long as the operation takes"),
    OptionDef::choice::<Sync>("sync", "How ranks enter an operation together").default("window"),
    OptionDef::time("max-late", "Leave an operation out of the times if a rank entered it so late")
        .default("1us"),
];

impl PatternOptions for Collective {
    fn about(&self) -> &'static str {
        "Measure collective operations of MPI: first entry to last exit on common time"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge collective --collective barrier,bcast,allreduce --size '8..64KiB*4'
  wiregauge collective --nodes 4 --collective alltoall --size 1KiB --mpirun mpirun.mpich
  mpirun -np 16 --map-by node wiregauge collective --nonblocking --size 1MiB"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let mut ranks = each_once(given.counts32("nodes"));
        if ranks.is_empty() {
            ranks.push(RANKS);
        }
        let spec = Spec {
            nonblocking: given.flag("nonblocking"),
            compute: given.time("compute").unwrap_or(Span(0)),
            sync: given.choice("sync").unwrap_or_default(),
            max_late: given.time("max-late").unwrap_or(MAX_LATE),
            ..Spec::default()
        };
        let operations = given.choices("collective");
        Ok(with_sizes(given, request(CollectiveRequest { spec, operations, ranks })))
    }
}
