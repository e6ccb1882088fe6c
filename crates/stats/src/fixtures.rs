//! Seeded series with known properties, for the tests of this stage.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

/// A source of chance that gives the same on every machine.
pub fn random(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Independent exponential delays of mean 1: the quantile p is -ln(1-p).
pub fn iid(random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    Exp1.sample_iter(random).take(n).collect()
}

/// Independent normal samples.
pub fn normal(random: &mut ChaCha8Rng, n: usize, mean: f64, sd: f64) -> Vec<f64> {
    let standard = StandardNormal.sample_iter(random);
    standard.take(n).map(|z: f64| mean + sd * z).collect()
}

/// Correlated delays: the exponential of a stationary Gaussian autoregression with unit variance
/// and factor `phi`. The quantile p is exp(z(p)), the median 1.
pub fn ar1(random: &mut ChaCha8Rng, n: usize, phi: f64) -> Vec<f64> {
    let mut noise = StandardNormal.sample_iter(random);
    let mut draw = || noise.next().unwrap_or(0.0);
    let mut state: f64 = draw();
    let mut series = Vec::with_capacity(n);
    for _ in 0..n {
        series.push(state.exp());
        state = phi * state + (1.0 - phi * phi).sqrt() * draw();
    }
    series
}
