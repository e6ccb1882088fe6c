//! The options and the specification of latency: how many messages are on the way together, and how
//! long it pauses.

use crate::load::connections_of;
use crate::oneway::refuse_one_sided;
use crate::options::{check_descriptors, check_watched, connections};
use crate::prelude::*;
use wiregauge_plan::topology::Wiring;

/// The pattern.
pub struct Latency;

/// The specification of a case, and what was asked for: it has no lists.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Pause between two bursts (between two messages where the burst is 1).
    pub pause: Span,
    /// Messages posted together.
    pub burst: u32,
}

impl Default for Spec {
    fn default() -> Spec {
        Spec { pause: Span(0), burst: 1 }
    }
}

/// A request for ping-pongs.
#[derive(Clone, Debug)]
pub struct LatencyRequest {
    /// The specification of all cases.
    pub spec: Spec,
    /// Numbers of connections, each a case.
    pub connections: Vec<u32>,
}

impl From<Spec> for LatencyRequest {
    fn from(spec: Spec) -> LatencyRequest {
        LatencyRequest { spec, connections: vec![1] }
    }
}

impl Default for LatencyRequest {
    fn default() -> LatencyRequest {
        LatencyRequest::from(Spec::default())
    }
}

/// A request with the defaults.
pub fn request(asked: LatencyRequest) -> Request {
    // A round trip is the same whoever is the client.
    Request { is_directed: false, ..Request::new(&Latency, asked, Bytes(64)) }
}

impl LatencyRequest {
    fn has_several(&self) -> bool {
        self.connections.iter().any(|connections| *connections > 1)
    }
}

impl PatternRequest for LatencyRequest {
    fn check(&self, request: &Request) -> Result<(), UsageError> {
        if !self.has_several() {
            return Ok(());
        }
        let Spec { pause, burst } = self.spec;
        ensure!(
            pause.0 == 0 && burst == 1,
            "--connections sends one message at a time: use it without --burst and --pause"
        );
        request.refuse_stamps()?;
        refuse_one_sided(request)?;
        let has_one = request.threads.iter().all(|threads| *threads == 1);
        ensure!(has_one, "--connections are those of one thread: use --threads 1");
        refuse_found(request.simulated(), |simulated| {
            format!("{simulated} does not support --connections, since it has one server")
        })
    }

    fn check_over(&self, request: &Request, over: TransportKind) -> Result<(), UsageError> {
        check_watched(request, self.has_several(), over)?;
        check_descriptors(&self.connections, 1, over)
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        self.connections
            .iter()
            .map(|connections| {
                let mut case = request.case(of, self.spec);
                if *connections > 1 {
                    let wiring = Wiring::Mesh { each: *connections };
                    case.topology = Topology::client_server(1, 1, wiring);
                }
                case
            })
            .collect()
    }
}

impl PatternSpec for Latency {
    fn name(&self) -> &'static str {
        "latency"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read::<Spec>(json, OPTIONS)
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let Spec { pause, burst } = *case.spec();
        let profile = CaseProfile::of_bursts(case, burst, pause);
        let is_alone = burst == 1 && !profile.is_one_sided;
        match case.topology.connections_each() {
            1 => CaseProfile { followed: is_alone.then_some(Followed::Alone), ..profile },
            _ => CaseProfile {
                followed: Some(Followed::RoundTrips { reply: None }),
                ending: Ending::ServersAfterClients,
                ..profile
            },
        }
    }

    fn connection_of(&self, case: &Case, _: u32) -> Box<dyn Fn(u64) -> u32> {
        connections_of(case)
    }
}

const OPTIONS: OptionTable = &[SIZE, BURST, PAUSE, CONNECTIONS];

impl PatternOptions for Latency {
    fn about(&self) -> &'static str {
        "Measure round-trip latency: ping-pong, one message (or burst) at a time"
    }

    fn examples(&self) -> &'static str {
        "
  wiregauge latency --transport tcp,udp,unix,shm --wait busy,block
  wiregauge latency --size '8..64KiB*2' --perturb --until 5%
  wiregauge latency --transport tcp --connections '1..16384*2'
  wiregauge latency --transport tcp --count 100k --rounds 10 --cpus 2,3 --json > record.json"
    }

    fn options(&self) -> OptionTable {
        OPTIONS
    }

    fn request(&self, given: &Given) -> Result<Request, UsageError> {
        let connections = connections(given)?;
        Ok(with_sizes(given, request(LatencyRequest { spec: given.fields()?, connections })))
    }
}
