//! A plan and its cases as the record keeps them. What a pattern asks is kept in the pattern's own
//! form.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use wiregauge_plan::{Axis, Case, Plan};

/// What was to be done.
pub type PlanRecord = Plan<CaseRecord>;

/// What was measured, with fixed parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CaseRecord {
    /// The case.
    #[serde(flatten)]
    pub case: Case<String, Value>,
    /// A short name that distinguishes the case from others, without its hosts.
    pub label: String,
    /// What distinguishes it from other points of a curve.
    pub point: Option<String>,
    /// Where it stands on the axes of graphs.
    pub axes: BTreeMap<Axis, f64>,
    /// Whether it was measured for the sake of others: graphs do not show it.
    pub is_preparation: bool,
    /// Whether the server takes no part in an operation, so that the client has all stamps.
    #[serde(default)]
    pub is_one_sided: bool,
}

impl Deref for CaseRecord {
    type Target = Case<String, Value>;

    fn deref(&self) -> &Self::Target {
        &self.case
    }
}

impl From<&Case> for CaseRecord {
    fn from(case: &Case) -> CaseRecord {
        let axes = Axis::ALL.iter().filter_map(|axis| Some((*axis, case.on_axis(*axis)?)));
        let profile = case.profile();
        CaseRecord {
            label: case.label(),
            point: case.pattern.point(case).map(wiregauge_plan::shorter),
            axes: BTreeMap::from_iter(axes),
            is_preparation: profile.is_preparation,
            is_one_sided: profile.is_one_sided,
            case: case.clone().into_form(case.pattern.name().into(), case.spec.to_json()),
        }
    }
}

impl CaseRecord {
    /// The specification as the pattern's own type; `None`: it is of another one.
    pub fn spec<T: DeserializeOwned>(&self, pattern: &str) -> Option<T> {
        let own = Some(&self.spec).filter(|_| self.pattern == pattern);
        T::deserialize(own?).ok()
    }

    /// Where it stands on an axis of graphs.
    pub fn on_axis(&self, axis: Axis) -> Option<f64> {
        self.axes.get(&axis).copied()
    }
}
