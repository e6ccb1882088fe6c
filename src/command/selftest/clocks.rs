//! The rows that judge what is known of other hosts' clocks: the offset of one, from exchanges with
//! a known truth, and the one-way samples that the model is applied to; the begin of rounds on many
//! at one instant; and this host's clock against the kernel's.

use super::simulate::{play, scheduled};
use super::{Fallible, Outcome};
use crate::analysis::start;
use crate::clock::offset::{Exchange, Model};
use crate::clock::{ChosenClock, LocalNs, MOST_PPM, Ticks, Timebase};
use crate::plan::Schedule;
use crate::record::schema::{Begin, Start};
use crate::sample::join::End;
use crate::units::MessageRate;
use crate::warning::Warning;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};
use std::time::Duration;

const OFFSET_NS: f64 = 1e9;
const DRIFT_PPM: f64 = 20.0;
/// The ways there and back: the least delay, and the mean of what waits in queues.
const THERE_NS: (f64, f64) = (3000.0, 600.0);
const BACK_NS: (f64, f64) = (1000.0, 200.0);
/// A way back of nearly nothing: half of what the bound allows would be too little.
const SHORT_NS: (f64, f64) = (100.0, 20.0);
const EXCHANGES: u32 = 1000;
/// One exchange each 10 ms.
const APART_NS: f64 = 1e7;

/// Another host's clock.
#[derive(Clone, Copy)]
struct Other {
    offset_ns: f64,
    drift_ppm: f64,
}

impl Other {
    /// What it shows at a time here.
    fn at(self, here: f64) -> LocalNs {
        LocalNs(here * (1.0 + self.drift_ppm * 1e-6) + self.offset_ns)
    }
}

fn exchanges(other: Other, back_ns: (f64, f64)) -> Vec<Exchange> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut delay = |(least, mean): (f64, f64)| {
        let waits: f64 = Exp1.sample(&mut random);
        least + mean * waits
    };
    let one = |number: u32| {
        let sent = f64::from(number) * APART_NS;
        let reached = sent + delay(THERE_NS);
        let heard = reached + delay(back_ns);
        Exchange {
            sent: LocalNs(sent),
            reached: other.at(reached),
            answered: other.at(reached),
            heard: LocalNs(heard),
        }
    };
    (0..EXCHANGES).map(one).collect()
}

/// T10: an offset, a drift and a way that is longer there than back.
pub fn t10_offset_and_drift() -> Outcome {
    let other = Other { offset_ns: OFFSET_NS, drift_ppm: DRIFT_PPM };
    let [model, lopsided] = [BACK_NS, SHORT_NS].map(|back| Model::fit(&exchanges(other, back)));
    let (model, lopsided) = (model.ok_or("no model")?, lopsided.ok_or("no model")?);
    let rate = Schedule::Periodic { rate: MessageRate(1e9 / APART_NS) };
    let spec = format!("constant(3us) offset(1s) drift({DRIFT_PPM}ppm)");
    let played = play(&scheduled(&spec, u64::from(EXCHANGES), rate)?)?;
    let (mut worst, mut bound, mut holds) = (0.0f64, 0.0f64, true);
    for sample in &played.samples.samples {
        let (received, allowed) = model.here(LocalNs(sample.receive_ns));
        let error = (received.0 - sample.submit_ns - 3000.0).abs();
        holds &= error <= allowed;
        let (there, at_most) = lopsided.here(LocalNs(sample.receive_ns));
        holds &= (there.0 - sample.submit_ns - 3000.0).abs() <= at_most;
        (worst, bound) = (worst.max(error), bound.max(allowed));
    }
    let drift = model.drift_at(LocalNs(0.0)).ok_or("no drift")?;
    let aged = [10e9, 40e9, 110e9].map(|at| model.offset_at(LocalNs(at)).bound_ns);
    let grows = aged.is_sorted_by(|young, old| young < old);
    let measured = format!(
        "off by {worst:.0} ns of +-{bound:.0}, {:.2} ppm, +-{:.0} ns after 100 s",
        drift.ppm, aged[2]
    );
    let passes = holds && grows && (drift.ppm - DRIFT_PPM).abs() <= 0.1;
    Ok(("3000 ns, 20 ppm".into(), measured, passes))
}

/// T19: what the clock makes of a second that the kernel's clock has measured, which time daemons
/// hold to that of the world.
pub fn t19_scale() -> Outcome {
    let clock = ChosenClock::calibrate(None)?;
    std::thread::sleep(Duration::from_secs(1));
    let off = clock.against_kernel().ok_or("time did not advance")?;
    let truth = format!("{:.6} s", off.kernel_ns / 1e9);
    let measured = format!("{:.6} s, off by {:.1} ppm", off.measured_ns / 1e9, off.ppm());
    Ok((truth, measured, off.ppm().abs() <= MOST_PPM && off.kernel_ns >= 1e9))
}

/// A round, and a rank in it.
type Which = (u32, u32);

/// Ends of a scheduled exchange, the rounds of it, and the one that begins late in one of them.
const RANKS: u32 = 8;
const ROUNDS: u32 = 20;
const LATE: Which = (7, 3);
const LATE_NS: f64 = 1e6;
/// What a rank takes from the instant to its first step, on average.
const WAKES_NS: f64 = 2000.0;

/// How each rank of each round began, by its own stamps: each was given the instant by what was
/// known of its clock before the round, and is judged by what is known after all.
fn begins() -> Fallible<Vec<Vec<Begin>>> {
    let time = Timebase::nanoseconds(Ticks(0));
    let mut random = ChaCha8Rng::seed_from_u64(14);
    let mut rounds = vec![Vec::new(); ROUNDS as usize];
    for rank in 0..RANKS {
        let number = f64::from(rank);
        let other = Other { offset_ns: 0.7e9 * (number + 1.0), drift_ppm: 12.0 * number - 40.0 };
        let exchanges = exchanges(other, BACK_NS);
        let after = Model::fit(&exchanges).ok_or("no model")?;
        for (round, begins) in (0..).zip(&mut rounds) {
            let known = exchanges.len() * (round as usize + 10) / (ROUNDS as usize + 10);
            let before = Model::fit(&exchanges[..known]).ok_or("no model")?;
            let agreed = LocalNs(exchanges[known - 1].heard.0 + 1e8);
            let given = agreed.0 + before.offset_at(agreed).ns;
            let wakes: f64 = Exp1.sample(&mut random);
            let late_ns = if (round, rank) == LATE { LATE_NS } else { 0.0 };
            let began = LocalNs(given + WAKES_NS * wakes + late_ns);
            let end = End { time: &time, offset: Some(&after) };
            begins.push(start::begin(agreed, began, end));
        }
    }
    Ok(rounds)
}

/// The late starts of a round whose ranks run in pairs at the same time, as the run warns of them.
fn flagged(round: u32, begins: &[Begin]) -> Vec<Warning> {
    let of_pair = |(pair, ends): (usize, &[Begin])| {
        let spread_ns = start::spread_ns(begins.iter());
        let start =
            Start { client: ends.first().copied(), server: ends.get(1).copied(), spread_ns };
        start::warnings(round, &start, |role, _| format!("rank {}", 2 * pair + role.pick(0, 1)))
    };
    begins.chunks(2).enumerate().flat_map(of_pair).collect()
}

/// T14: of ranks that are to begin at one instant, each by a clock of its own, one is late.
pub fn t14_late_rank() -> Outcome {
    let rounds = begins()?;
    let found: Vec<Warning> =
        (0..).zip(&rounds).flat_map(|(round, begins)| flagged(round, begins)).collect();
    // Of the other rounds all ranks begin together.
    let others = (0..).zip(&rounds).filter(|(round, _)| *round != LATE.0);
    let together = others.map(|(_, begins)| start::spread_ns(begins.iter())).fold(0.0, f64::max);
    let truth = format!("round {}, rank {}, {} ms", LATE.0, LATE.1, LATE_NS / 1e6);
    let [Warning::LateStart { end, round, late_ns, bound_ns, .. }] = found.as_slice() else {
        return Ok((truth, format!("{} late starts", found.len()), false));
    };
    let measured = format!(
        "round {round}, {end}, {:.3} ms; the other rounds within {:.1} us",
        late_ns / 1e6,
        together / 1e3
    );
    let is_named = *round == LATE.0 && *end == format!("rank {}", LATE.1);
    let is_right = (late_ns - LATE_NS).abs() <= bound_ns + 20.0 * WAKES_NS;
    let spread_ns = start::spread_ns(rounds[LATE.0 as usize].iter());
    let is_wide = (spread_ns - LATE_NS).abs() <= start::ALLOWED_NS;
    Ok((truth, measured, is_named && is_right && is_wide && together < start::ALLOWED_NS))
}
