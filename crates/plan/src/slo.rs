//! A limit for the responses, e.g. `p99<50us`.

use crate::study::file::QUANTILES;
use serde::{Deserialize, Serialize};
use wiregauge_base::units::{Span, quantile_name};

/// A bound for the responses, e.g. `p99<50us`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slo {
    /// The quantile, one of those that a record has.
    pub quantile: f64,
    /// What it must stay below.
    pub below: Span,
}

impl std::str::FromStr for Slo {
    type Err = String;

    fn from_str(text: &str) -> Result<Slo, String> {
        let parsed = text.split_once('<').and_then(|(name, span)| {
            let percent: f64 = name.trim().strip_prefix('p')?.parse().ok()?;
            let known = QUANTILES.into_iter().find(|p| (p * 100.0 - percent).abs() < 1e-9)?;
            let below: Span = span.trim().parse().ok()?;
            (below.0 > 0).then_some(Slo { quantile: known, below })
        });
        parsed.ok_or_else(|| {
            format!(
                "invalid bound '{text}': use a quantile of the response (p50, p90, p99, p99.9 \
                 or p99.99) and a time such as 'p99<50us'"
            )
        })
    }
}

impl std::fmt::Display for Slo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} < {}", quantile_name(self.quantile), self.below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_a_quantile_and_a_time() {
        let slo: Slo = "p99<50us".parse().unwrap();
        assert_eq!(slo, Slo { quantile: 0.99, below: Span(50_000) });
        assert_eq!(slo.to_string(), "p99 < 50 us");
        let slo: Slo = "p99.9 < 1ms".parse().unwrap();
        assert_eq!((slo.quantile, slo.to_string().as_str()), (0.999, "p99.9 < 1 ms"));
        for bad in ["p99", "p98<1us", "p99<0us", "p99<50", "99<1us", "p99>1us", ""] {
            let sentence = bad.parse::<Slo>().unwrap_err();
            assert!(sentence.contains("'p99<50us'"), "{sentence}");
        }
    }
}
