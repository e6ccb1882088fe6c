//! A clock of the other host that is made wrong by a known amount, to prove that the comparison of
//! clocks finds it. Pure.

use super::Span;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// What the other host's clock is made wrong by. All times are since its own epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InjectedClockError {
    /// What it is ahead by from the begin.
    pub offset_ns: f64,
    /// What it gains, in parts per million.
    pub drift_ppm: f64,
    /// By what it is set forward (or back), and when.
    pub step: Option<Step>,
    /// What the scale of this host's own clock is made wrong by, in parts per million. No other
    /// host is told of it.
    #[serde(skip)]
    pub scale_ppm: f64,
}

/// A clock that is set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// By so much.
    pub by_ns: f64,
    /// At this time of the true clock.
    pub at_ns: f64,
}

const ALLOWED: &str = "offset(T), drift(Xppm), step(T@T), each T with or without a minus, as \
                       'offset(-1s) drift(50ppm) step(40us@2s)', or scale(Xppm)";

impl FromStr for InjectedClockError {
    type Err = String;

    fn from_str(text: &str) -> Result<InjectedClockError, String> {
        let mut error = InjectedClockError::default();
        for word in text.split_whitespace() {
            error.apply(word).ok_or_else(|| format!("unknown term '{word}': use {ALLOWED}"))?;
        }
        Ok(error)
    }
}

impl InjectedClockError {
    fn apply(&mut self, word: &str) -> Option<()> {
        let (name, rest) = word.split_once('(')?;
        let inner = rest.strip_suffix(')')?;
        match name {
            "offset" => self.offset_ns = ns(inner)?,
            "drift" => {
                // No two working clocks run further apart.
                self.drift_ppm = ppm(inner, 900.0)?;
            }
            // One that is wrong by half and more would stamp nothing.
            "scale" => self.scale_ppm = ppm(inner, 500_000.0)?,
            "step" => {
                let (by, at) = inner.split_once('@')?;
                self.step = Some(Step { by_ns: ns(by)?, at_ns: ns(at)? });
            }
            _ => return None,
        }
        Some(())
    }

    /// Whether it concerns the clock of another host.
    pub fn is_remote(&self) -> bool {
        InjectedClockError { scale_ppm: 0.0, ..*self } != InjectedClockError::default()
    }

    /// What the clock is ahead by when the true one shows `at_ns`.
    pub fn error_ns(&self, at_ns: f64) -> f64 {
        let stepped = self.step.filter(|step| at_ns >= step.at_ns).map_or(0.0, |step| step.by_ns);
        self.offset_ns + at_ns * self.drift_ppm * 1e-6 + stepped
    }
}

/// NaN is refused too.
fn ppm(text: &str, most: f64) -> Option<f64> {
    let ppm: f64 = text.strip_suffix("ppm")?.parse().ok()?;
    (ppm.abs() <= most).then_some(ppm)
}

fn ns(text: &str) -> Option<f64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    text.parse::<Span>().ok().map(|span| sign * span.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_read_word_by_word_and_adds_up() {
        let error: InjectedClockError = "offset(-1s) drift(50ppm) step(40us@2s)".parse().unwrap();
        assert_eq!(error.error_ns(1e9), -1e9 + 50e3);
        assert_eq!(error.error_ns(2e9), -1e9 + 100e3 + 40e3);
        let scale: InjectedClockError = "scale(-1500ppm)".parse().unwrap();
        assert_eq!((scale.scale_ppm, scale.error_ns(1e9)), (-1500.0, 0.0));
        assert!(!scale.is_remote() && error.is_remote());
        assert_eq!("".parse::<InjectedClockError>().unwrap().error_ns(5.0), 0.0);
        for bad in ["drift(1)", "drift(1000ppm)", "drift(NaNppm)", "offset(1)", "step(1s)", "x(1s)"]
        {
            let said = bad.parse::<InjectedClockError>().unwrap_err();
            assert!(said.contains(bad) && said.contains(": use "), "{said}");
        }
    }
}
