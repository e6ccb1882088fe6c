//! A case as a control message carries it. The specification travels as text: only its pattern
//! knows what it holds.

use crate::written::one_line;
use crate::{Case, PatternRef, Schedule, Trace};

/// A [`Case`] on its way to an agent: its pattern's name, and its specification as JSON.
pub type CaseFrame = Case<String, String>;

impl From<&Case> for CaseFrame {
    fn from(case: &Case) -> CaseFrame {
        let spec = case.spec.to_json().to_string();
        case.clone().into_form(case.pattern.name().into(), spec)
    }
}

impl CaseFrame {
    /// The case, as far as its pattern could run it.
    ///
    /// # Errors
    /// A sentence: an unknown pattern, or a specification that it refuses.
    pub fn read(self, find: impl Fn(&str) -> Option<PatternRef>) -> Result<Case, String> {
        let checked = || {
            let name = &self.pattern;
            let pattern = find(name).ok_or_else(|| format!("unknown pattern '{name}'"))?;
            let json = serde_json::from_str(&self.spec);
            let json = json.map_err(|error| format!("the specification of {name}: {error}"))?;
            let spec = pattern.read_spec(json)?;
            self.topology.check()?;
            self.trace.as_ref().map_or(Ok(()), Trace::check)?;
            let schedule = match (self.schedule, &self.trace) {
                (Schedule::Trace { .. }, None) => return Err("the case has no trace".into()),
                // Its times say what its rate is, whatever came with them.
                (Schedule::Trace { .. }, Some(trace)) => Schedule::Trace { rate: trace.rate() },
                (other, _) => other,
            };
            schedule.check()?;
            let case = Case { schedule, ..self.into_form(pattern, spec) };
            pattern.check_foreign(&case)?;
            Ok(case)
        };
        checked().map_err(|sentence: String| one_line(&sentence))
    }
}
