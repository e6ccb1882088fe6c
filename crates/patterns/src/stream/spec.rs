//! What a stream asks: what its samples are, how often one is sent, and where they are kept.

use crate::oneway;
use crate::prelude::*;
use wiregauge_signal::file::Keep;
use wiregauge_signal::source::Shape;
use wiregauge_signal::{METADATA, MOST_VALUES, VALUE, message_bytes};

/// The pattern.
pub struct Stream;

/// Fewest samples per second.
pub const LEAST_RATE: MessageRate = MessageRate(10.0);
/// Most samples per second.
pub const MOST_RATE: MessageRate = MessageRate(1e6);
/// The same where nothing else is asked for.
pub const RATE: MessageRate = MessageRate(10e3);
/// Values of a sample where nothing else is asked for.
pub const VALUES: u32 = 8;

/// The specification of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// What the values are over time.
    pub shape: Shape,
    /// Values of a sample.
    pub values: u32,
    /// The file in which the samples that arrive are kept.
    pub keep: Option<Keep>,
}

/// What was asked for: lists are cases. The numbers of values are the request's sizes.
#[derive(Clone, Debug, Default)]
pub struct StreamRequest {
    /// What the values are over time.
    pub shape: Shape,
    /// The file in which the samples that arrive are kept.
    pub keep: Option<Keep>,
    /// Steps per second, each a case.
    pub rates: Vec<MessageRate>,
}

/// Bytes of the message of a sample.
pub fn message(values: u32) -> Bytes {
    Bytes(message_bytes(values as usize) as u64)
}

fn values_of(message: Bytes) -> u64 {
    message.0.saturating_sub(METADATA as u64) / VALUE as u64
}

/// A request for samples of these numbers of values.
pub fn request(mut asked: StreamRequest, values: &[u32]) -> Request {
    if asked.rates.is_empty() {
        asked.rates.push(RATE);
    }
    let rate = asked.rates[0];
    let sizes = values.iter().map(|values| message(*values)).collect();
    let request = Request::new(&Stream, asked, message(VALUES));
    Request { sizes, schedule: Schedule::Periodic { rate }, ..request }
}

impl PatternSpec for Stream {
    fn name(&self) -> &'static str {
        "stream"
    }

    fn read_spec(&self, json: Value) -> Result<plan::Spec, String> {
        plan::Spec::read_checked(json, |spec: &Spec| check_shape(&spec.shape))
    }

    fn check_foreign(&self, case: &Case) -> Result<(), String> {
        let values = case.spec::<Spec>().values;
        let is_open = case.schedule.is_open() && values as usize <= MOST_VALUES;
        let is_whole = is_open && message(values) <= case.size;
        ensure!(is_whole, "a message of a stream is as long as its values, and has a rate");
        Ok(())
    }

    fn is_carried_by(&self, descriptor: &Descriptor) -> bool {
        descriptor.traffic.iter().any(|traffic| traffic.same_kind(Traffic::Forward))
    }

    fn profile(&self, case: &Case) -> CaseProfile {
        let spec = case.spec::<Spec>();
        CaseProfile {
            reads_payloads: true,
            traffic: Traffic::Forward,
            stamps_at_server: true,
            is_one_way: true,
            queue_depth: oneway::WINDOW,
            value_kind: spec.shape.kind,
            values: Some(spec.values),
            ..CaseProfile::of(case)
        }
    }

    fn for_round(&self, case: &Case, round: u32, of: u32) -> Case {
        let mut spec = case.spec::<Spec>().clone();
        spec.keep = spec.keep.map(|keep| if of > 1 { keep.of_round(round) } else { keep });
        case.with_spec(spec)
    }

    fn point(&self, case: &Case) -> Option<String> {
        case.schedule.rate().map(|rate| format!("at {}/s", rate.0.round()))
    }
}

fn check_shape(shape: &Shape) -> Result<(), UsageError> {
    let Shape { frequency, amplitude, offset, phase, deviation, .. } = *shape;
    let all = [frequency, amplitude, offset, phase, deviation];
    ensure!(
        all.iter().all(|one| one.is_finite()) && frequency >= 0.0 && deviation >= 0.0,
        "--frequency and --deviation must be 0 or above, and all values of a signal finite"
    );
    Ok(())
}

impl PatternRequest for StreamRequest {
    fn check(&self, request: &Request) -> Result<(), UsageError> {
        let is_periodic = matches!(request.schedule, Schedule::Periodic { .. });
        ensure!(is_periodic, "a stream has a step every 1/rate: use --rate");
        let (least, most) = (LEAST_RATE.0, MOST_RATE.0);
        refuse_found(self.rates.iter().find(|rate| !(least..=most).contains(&rate.0)), |rate| {
            format!("--rate: '{}' is out of range for a stream: use {least} to {most}", rate.0)
        })?;
        check_shape(&self.shape)?;
        request.refuse_stamps()?;
        oneway::refuse_threads(request)?;
        ensure!(
            !request.check && !request.perturb,
            "stream does not support --check and --perturb, since its messages are samples"
        );
        if self.keep.is_some() { self.check_file(request) } else { Ok(()) }
    }

    fn check_over(&self, request: &Request, _: TransportKind) -> Result<(), UsageError> {
        oneway::refuse_one_sided(request)
    }

    fn cases(&self, request: &Request, of: &Combination) -> Vec<Case> {
        let values = values_of(of.size) as u32;
        let spec = Spec { shape: self.shape, values, keep: self.keep.clone() };
        let at = |schedule| Request { schedule, ..request.clone() }.case(of, spec.clone());
        self.rates.iter().map(|rate| at(request.schedule.at(*rate))).collect()
    }
}

impl StreamRequest {
    fn check_file(&self, request: &Request) -> Result<(), UsageError> {
        let (transports, waits) = (request.transports.len(), request.waits.len());
        let cases = [transports, waits, request.sizes.len(), self.rates.len()];
        ensure!(
            cases.iter().product::<usize>() <= 1,
            "--file is for one combination of transport, wait mode, rate and number of values: use \
             one of each"
        );
        let is_here = !request.place.is_remote();
        ensure!(is_here, "--file does not work with remote hosts: it is written on this host");
        refuse_found(request.simulated(), |simulated| {
            format!("{simulated} simulates both ends and does not support --file")
        })
    }
}
