//! From the words of the command line to values.

use super::args::{Arrivals, Measure, Switch, TransportOptions, Ways};
use super::{Asked, transport_names};
use crate::clock::Source;
use crate::host;
use crate::plan::{CpuPair, Direction, Options, Pattern, Refusal, Request, Schedule, Wait, sweep};
use crate::transport::TransportKind;
use crate::units::{Bytes, MessageRate, Span};

/// A measurement's request.
pub fn measure(pattern: Pattern, typed: Measure) -> Result<Asked, Refusal> {
    let default = Request::new(pattern);
    let rate =
        typed.rate.as_deref().map(|text| named::<MessageRate>("--rate", text)).transpose()?;
    let request = Request {
        pattern,
        transports: list(&typed.transport, |name| {
            TransportKind::from_name(name).ok_or_else(|| {
                format!("transport '{name}' is unknown; allowed are {}", transport_names())
            })
        })?,
        sizes: match &typed.size {
            None => default.sizes,
            Some(text) => {
                sweep::parse(text).map_err(|error| Refusal(format!("--size: {error}")))?
            }
        },
        perturb: typed.perturb,
        waits: list(&typed.wait, |name| {
            Wait::ALL.iter().copied().find(|wait| wait.name() == name).ok_or_else(|| {
                format!("wait mode '{name}' is unknown; allowed are busy, block, adaptive")
            })
        })?,
        count: typed.count,
        time: typed.time.as_deref().map(|text| span("--time", text)).transpose()?,
        warmup: typed.warmup,
        pause: span("--pause", &typed.pause)?,
        burst: typed.burst,
        window: typed.window,
        direction: match typed.direction {
            Ways::Uni => Direction::Uni,
            Ways::Bi => Direction::Bi,
        },
        schedule: match (rate, typed.arrivals) {
            (None, _) => Schedule::ClosedLoop,
            (Some(rate), Arrivals::Periodic) => Schedule::Periodic { rate },
            (Some(rate), Arrivals::Poisson) => Schedule::Poisson { rate },
        },
        check: typed.check,
        loss_after: span("--loss-after", &typed.loss_after)?,
        timeout: span("--timeout", &typed.timeout)?,
        rounds: typed.rounds,
        until: typed.until.as_deref().map(percent).transpose()?,
        cpus: cpu_pair(typed.cpus.as_deref())?,
        threshold: span("--threshold", &typed.threshold)?,
        options: options(typed.options)?,
        seed: typed.seed,
    };
    let clock = clock(typed.clock.as_deref())?;
    Ok(Asked::Measure { request: Box::new(request), clock, output: super::output(typed.output) })
}

fn options(typed: TransportOptions) -> Result<Options, Refusal> {
    let size =
        |name: &str, text: Option<String>| text.map(|text| named::<Bytes>(name, &text)).transpose();
    let busy_poll = typed.busy_poll.map(|text| span("--busy-poll", &text)).transpose()?;
    Ok(Options {
        nodelay: typed.nodelay.map(|switch| switch == Switch::On),
        busy_poll_us: busy_poll.map(|span| (span.0 / 1000).min(u64::from(u32::MAX)) as u32),
        send_buffer: size("--send-buffer", typed.send_buffer)?,
        receive_buffer: size("--receive-buffer", typed.receive_buffer)?,
        zerocopy: typed.zerocopy,
        congestion: typed.congestion,
        dscp: typed.dscp,
        synthetic: typed
            .synthetic
            .map(|text| text.parse().map_err(|error| Refusal(format!("--synthetic: {error}"))))
            .transpose()?,
    })
}

fn named<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: &str,
) -> Result<T, Refusal> {
    text.parse().map_err(|error| Refusal(format!("{name}: {error}")))
}

/// A length of time.
pub fn span(name: &str, text: &str) -> Result<Span, Refusal> {
    named(name, text)
}

fn list<T>(text: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, Refusal> {
    text.split(',').map(|name| read(name.trim()).map_err(Refusal)).collect()
}

fn percent(text: &str) -> Result<f64, Refusal> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    number.filter(|width| width.is_finite()).map(|width| width / 100.0).ok_or_else(|| {
        Refusal(format!("--until '{text}' is not allowed; write a percentage as 5% or 0.5%"))
    })
}

/// The CPUs of the roles, both checked against what this process may use.
pub fn cpu_pair(text: Option<&str>) -> Result<Option<CpuPair>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let cpus: Option<Vec<u32>> = text.split(',').map(|cpu| cpu.trim().parse().ok()).collect();
    match cpus.as_deref() {
        Some([client, server]) => host::check_pair(*client, *server)
            .map(Some)
            .map_err(|error| Refusal(format!("--cpus {text}: {error}"))),
        _ => Err(Refusal(format!(
            "--cpus '{text}' is not allowed; write two CPUs of {}, as 0,1",
            host::format_cpus(&host::allowed_cpus())
        ))),
    }
}

/// A list of CPUs, each checked.
pub fn cpu_list(text: Option<&str>) -> Result<Vec<u32>, Refusal> {
    let allowed = host::allowed_cpus();
    let Some(text) = text else { return Ok(allowed) };
    let cpus = host::parse_cpus(text).filter(|cpus| !cpus.is_empty());
    cpus.filter(|cpus| cpus.iter().all(|cpu| allowed.contains(cpu))).ok_or_else(|| {
        Refusal(format!(
            "--cpus '{text}' is not allowed; write some of {}, as 0,1 or 0-3",
            host::format_cpus(&allowed)
        ))
    })
}

/// A clock.
pub fn clock(name: Option<&str>) -> Result<Option<Source>, Refusal> {
    let Some(name) = name else { return Ok(None) };
    Source::from_name(name).map(Some).ok_or_else(|| {
        let allowed = Source::ALL.map(Source::name).join(", ");
        Refusal(format!("clock '{name}' is unknown; allowed are {allowed}"))
    })
}
