//! The time of all rounds of a plan: where they take longer, as on a busy machine, each case has
//! fewer of them. Whoever asked for a survey waits no longer, and is told.

use std::time::{Duration, Instant};
use wiregauge_analysis::pattern::RunSoFar;
use wiregauge_base::units::Span;
use wiregauge_base::warning::{RecordedWarning, Warning};
use wiregauge_plan::Plan;

/// When rounds are to end, and how long a pass takes in which each case has one.
pub(super) struct TimeLimit {
    limit: Option<Duration>,
    began: Instant,
    /// When the last pass began.
    pass: Option<Instant>,
    is_ended: bool,
}

impl TimeLimit {
    /// Begins now.
    pub fn begin(limit: Option<Span>) -> TimeLimit {
        let limit = limit.map(|limit| limit.duration());
        TimeLimit { limit, began: Instant::now(), pass: None, is_ended: false }
    }

    /// Begins a pass, unless one as long as the last would end after the limit.
    pub fn has_room_for_pass(&mut self) -> bool {
        let now = Instant::now();
        let last = self.pass.replace(now).map_or(Duration::ZERO, |pass| now - pass);
        fits(self.limit, now - self.began, last)
    }

    /// Returns whether the limit has passed.
    pub fn is_over(&self) -> bool {
        !fits(self.limit, self.began.elapsed(), Duration::ZERO)
    }

    /// Ends the runs that have fewer rounds than planned, and no fault.
    pub fn end(&mut self, runs: &mut [RunSoFar]) {
        for run in runs.iter_mut().filter(|run| !run.is_over()) {
            let done = run.rounds.len();
            run.stop = Some(Ok(format!("{done} rounds were measured in the time for all")));
            self.is_ended = true;
        }
    }

    /// Returns the warning that cases have fewer rounds than planned.
    pub fn warning(&self, plan: &Plan, runs: &[RunSoFar]) -> Option<RecordedWarning> {
        let limit_s = self.limit.filter(|_| self.is_ended)?.as_secs_f64();
        let whole = runs.iter().filter(|run| run.is_complete());
        let rounds = whole.map(|run| run.rounds.len() as u32).min()?;
        let planned = plan.rounds.least;
        Some(RecordedWarning::from(&Warning::FewerRounds { rounds, planned, limit_s }))
    }
}

/// Returns whether so much more time ends before the limit.
fn fits(limit: Option<Duration>, elapsed: Duration, more: Duration) -> bool {
    limit.is_none_or(|limit| elapsed + more <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_figures::record::schema::Round;

    #[test]
    fn a_pass_begins_only_where_one_as_long_as_the_last_fits() {
        let s = Duration::from_secs;
        assert!(fits(Some(s(50)), s(30), s(20)) && !fits(Some(s(50)), s(31), s(20)));
        assert!(fits(None, s(1000), s(1000)));
        let mut limit = TimeLimit::begin(Some(Span(0)));
        // Nothing is known of how long a pass takes, but time has passed.
        assert!(!limit.has_room_for_pass() && limit.is_over());
        assert!(TimeLimit::begin(None).has_room_for_pass());
    }

    #[test]
    fn runs_that_the_limit_ends_are_complete_and_the_fewest_rounds_are_told() {
        let mut request = wiregauge_patterns::latency::request(Default::default());
        request.rounds = Some(6);
        let plan = request.plan().unwrap();
        let mut runs = [3, 2].map(|rounds| {
            let case = &plan.cases[0];
            let analysis = wiregauge_patterns::registry::analysis(case.pattern.name()).unwrap();
            let mut run = RunSoFar::new(0, case, analysis, &[], 1);
            run.rounds = vec![Round::default(); rounds];
            run
        });
        let mut limit = TimeLimit::begin(Some(Span(50_000_000_000)));
        assert_eq!(limit.warning(&plan, &runs), None);
        limit.end(&mut runs);
        assert!(runs.iter().all(RunSoFar::is_complete));
        let told = limit.warning(&plan, &runs).unwrap().sentence;
        assert_eq!(told, "cases have 2 of 6 rounds: all took longer than 50 s here");
        let ended = TimeLimit { is_ended: false, ..limit };
        assert_eq!(ended.warning(&plan, &runs), None);
    }
}
