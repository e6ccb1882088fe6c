//! The row that judges the offset between two hosts' clocks: exchanges with a known truth, and the
//! one-way samples that the model is applied to.

use super::Row;
use super::simulate::{play, scheduled};
use super::statistics::row;
use crate::clock::LocalNs;
use crate::clock::offset::{Exchange, Model};
use crate::plan::Schedule;
use crate::units::MessageRate;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1};

const OFFSET_NS: f64 = 1e9;
const DRIFT_PPM: f64 = 20.0;
/// The ways there and back: the least delay, and the mean of what waits in queues.
const THERE_NS: (f64, f64) = (3000.0, 600.0);
const BACK_NS: (f64, f64) = (1000.0, 200.0);
const EXCHANGES: u32 = 1000;
/// One exchange each 10 ms.
const APART_NS: f64 = 1e7;

/// What the other's clock shows at a time here.
fn other(here: f64) -> LocalNs {
    LocalNs(here * (1.0 + DRIFT_PPM * 1e-6) + OFFSET_NS)
}

fn exchanges() -> Vec<Exchange> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut delay = |(least, mean): (f64, f64)| {
        let waits: f64 = Exp1.sample(&mut random);
        least + mean * waits
    };
    let one = |number: u32| {
        let sent = f64::from(number) * APART_NS;
        let reached = sent + delay(THERE_NS);
        let heard = reached + delay(BACK_NS);
        Exchange {
            sent: LocalNs(sent),
            reached: other(reached),
            answered: other(reached),
            heard: LocalNs(heard),
        }
    };
    (0..EXCHANGES).map(one).collect()
}

/// T10: an offset, a drift and a way that is longer there than back.
pub fn t10_offset_and_drift() -> Row {
    let what = (
        "T10",
        "asymmetry 3:1, offset 1 s, drift 20 ppm",
        "error <= bound; drift within 0.1 ppm; bound grows with age",
    );
    let done = || {
        let model = Model::fit(&exchanges()).ok_or("no model")?;
        let rate = Schedule::Periodic { rate: MessageRate(1e9 / APART_NS) };
        let spec = format!("constant(3us) offset(1s) drift({DRIFT_PPM}ppm)");
        let played = play(&scheduled(&spec, u64::from(EXCHANGES), rate)?)?;
        let (mut worst, mut bound, mut holds) = (0.0f64, 0.0f64, true);
        for sample in &played.samples.samples {
            let (received, allowed) = model.here(LocalNs(sample.receive_ns));
            let error = (received.0 - sample.submit_ns - 3000.0).abs();
            holds &= error <= allowed;
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
    };
    row(what, done())
}
