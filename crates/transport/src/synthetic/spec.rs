//! How the synthetic transport behaves, and how a person writes it.

use wiregauge_base::units::Span;

/// A distribution of delays, in nanoseconds. For a round trip it is of the whole way there and
/// back, for one way of the way there: what a pattern measures is what was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Constant(f64),
    /// Normal, by mean and standard deviation; draws below zero count as zero.
    Normal(f64, f64),
    /// A least delay, and the mean of an exponential part.
    Exponential(f64, f64),
    /// Uniform, from a lower to an upper end.
    Uniform(f64, f64),
}

/// A share of slow messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// Probability of each message.
    pub share: f64,
    /// Its delay instead of the distribution's.
    pub delay_ns: f64,
    /// Only messages before this one.
    pub before: u64,
}

/// What the synthetic transport does to messages. All draws come from the case's seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Synthetic {
    /// Delays.
    pub delay: Delay,
    /// (message, its delay in ns): single stalls.
    pub stalls: Vec<(u64, f64)>,
    /// A share of slow messages.
    pub slow: Option<Slow>,
    /// Probability that a message is lost.
    pub loss: f64,
    /// Probability that a message comes twice.
    pub duplicate: f64,
    /// Probability that a message is held up by `reorder_ns`, so that later ones overtake it.
    pub reorder: f64,
    /// By how much.
    pub reorder_ns: f64,
    /// Part of a round trip's delay that falls on the way there, 0 to 1.
    pub forward_share: f64,
    /// What the server's clock is ahead of the client's at time 0, in ns.
    pub offset_ns: f64,
    /// What the server's clock runs fast by, in parts per million.
    pub drift_ppm: f64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Synthetic {
            delay: Delay::Normal(1000.0, 100.0),
            stalls: Vec::new(),
            slow: None,
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_ns: 0.0,
            forward_share: 0.5,
            offset_ns: 0.0,
            drift_ppm: 0.0,
        }
    }
}

/// Most words in a specification: more are a mistake.
const MOST_WORDS: usize = 64;

const ALLOWED: &str = "constant(T), normal(MEAN,SD), exponential(LEAST,MEAN), uniform(LOW,HIGH), \
                       stall(T@MESSAGE), slow(P%,T,BEFORE), loss(P%), duplicate(P%), \
                       reorder(P%,T), split(A:B), offset(T), drift(Xppm)";

impl std::str::FromStr for Synthetic {
    type Err = String;

    /// Words separated by spaces, e.g. `normal(1us,300ns) stall(5ms@500) loss(1%)`.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut spec = Synthetic::default();
        if text.split_whitespace().count() > MOST_WORDS {
            return Err(format!("more than {MOST_WORDS} terms"));
        }
        for word in text.split_whitespace() {
            spec.apply(word).ok_or_else(|| format!("unknown term '{word}': use {ALLOWED}"))?;
        }
        Ok(spec)
    }
}

impl Synthetic {
    fn apply(&mut self, word: &str) -> Option<()> {
        let (name, rest) = word.split_once('(')?;
        let inner = rest.strip_suffix(')')?;
        let parts: Vec<&str> = inner.split(',').collect();
        match (name, parts.as_slice()) {
            ("constant", [t]) => self.delay = Delay::Constant(ns(t)?),
            ("normal", [mean, sd]) => self.delay = Delay::Normal(ns(mean)?, ns(sd)?),
            ("exponential", [low, mean]) => self.delay = Delay::Exponential(ns(low)?, ns(mean)?),
            ("uniform", [low, high]) => {
                let (low, high) = (ns(low)?, ns(high)?);
                self.delay = (low <= high).then_some(Delay::Uniform(low, high))?;
            }
            ("stall", [stall]) => {
                let (t, message) = stall.split_once('@')?;
                self.stalls.push((message.parse().ok()?, ns(t)?));
            }
            ("slow", [share, t, before]) => {
                let before = before.parse().ok()?;
                self.slow = Some(Slow { share: percent(share)?, delay_ns: ns(t)?, before });
            }
            ("loss", [share]) => self.loss = percent(share)?,
            ("duplicate", [share]) => self.duplicate = percent(share)?,
            ("reorder", [share, t]) => {
                (self.reorder, self.reorder_ns) = (percent(share)?, ns(t)?);
            }
            ("split", [split]) => self.forward_share = share_of(split)?,
            ("offset", [t]) => self.offset_ns = ns(t)?,
            ("drift", [ppm]) => {
                let ppm: f64 = ppm.strip_suffix("ppm")?.parse().ok()?;
                // NaN is refused too.
                self.drift_ppm = (ppm.abs() <= 1000.0).then_some(ppm)?;
            }
            _ => return None,
        }
        Some(())
    }
}

fn ns(text: &str) -> Option<f64> {
    text.parse::<Span>().ok().map(|span| span.0 as f64)
}

fn percent(text: &str) -> Option<f64> {
    let share: f64 = text.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&share).then_some(share / 100.0)
}

fn share_of(text: &str) -> Option<f64> {
    let (there, back) = text.split_once(':')?;
    let (there, back): (u32, u32) = (there.parse().ok()?, back.parse().ok()?);
    let all = f64::from(there) + f64::from(back);
    (all > 0.0).then(|| f64::from(there) / all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_is_typed_is_in_range_or_refused(text in ANY_SPECIFICATION) {
            match text.parse::<Synthetic>() {
                Err(sentence) => prop_assert!(sentence.contains("use constant(T)"), "{}", sentence),
                Ok(spec) => {
                    for share in [spec.loss, spec.duplicate, spec.reorder, spec.forward_share] {
                        prop_assert!((0.0..=1.0).contains(&share), "{:?}", spec);
                    }
                    prop_assert!(spec.drift_ppm.abs() <= 1000.0 && spec.offset_ns.is_finite());
                }
            }
        }
    }

    /// Words of the language, sound and unsound, up to eight of them.
    const ANY_SPECIFICATION: &str = "((constant|normal|exponential|uniform|stall|slow|loss|\
        duplicate|reorder|split|offset|drift|x)\\(-?[0-9]{1,4}(us|ns|%|ppm|:1|@5)?\
        (,[0-9]{1,3}(us|s|%)?){0,2}\\)? ){0,8}";

    #[test]
    fn a_specification_is_read_word_by_word() {
        let spec: Synthetic =
            "normal(1us,300ns) stall(5ms@500) loss(1%) split(3:1) drift(-20ppm)".parse().unwrap();
        assert_eq!(spec.delay, Delay::Normal(1000.0, 300.0));
        assert_eq!(spec.stalls, [(500, 5e6)]);
        assert_eq!((spec.loss, spec.forward_share, spec.drift_ppm), (0.01, 0.75, -20.0));
    }

    #[test]
    fn an_unknown_word_is_refused_with_what_is_allowed() {
        for bad in ["jitter(1us)", "loss(101%)", "normal(1us)", "drift(NaNppm)", "stall(5ms)"] {
            let refusal = bad.parse::<Synthetic>().unwrap_err();
            assert!(refusal.contains(bad) && refusal.contains("use constant(T)"), "{refusal}");
        }
    }
}
