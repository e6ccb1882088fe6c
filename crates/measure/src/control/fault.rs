//! What goes wrong in a round.

use crate::control::frame::FrameError;
use std::borrow::Cow;
use std::time::Duration;
use wiregauge_clock::ClockError;
use wiregauge_plan::Ended;
use wiregauge_transport::Role;

/// Most ranks whose progress is listed in a message.
const MOST_SHOWN: usize = 8;

/// What ends a round, or keeps it from starting; displayed as a sentence.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Fault {
    /// The user wants the program to end.
    #[error("interrupted by the user")]
    Interrupted,
    /// Something was asked for that cannot be, and nothing failed: wrong use.
    #[error("{0}")]
    Refused(String),
    /// A role handled no message for too long.
    #[error(
        "stalled: the {}{} handled no message for {} s (handled so far: {}): allow a longer \
         --timeout{}",
        .role.name(), on(host), tenths(*.patience), shown(handled),
        if *.is_paced { ", or use a lower rate" } else { "" }
    )]
    Stalled {
        /// The role.
        role: Role,
        /// Its host, where several have this role.
        host: Option<String>,
        /// For how long.
        patience: Duration,
        /// How many messages each rank has handled.
        handled: Vec<Handled>,
        /// True if its messages are sent at a requested rate.
        is_paced: bool,
    },
    /// A role's loop ended that was to go on.
    #[error("the {}{} {}", .role.name(), on(host), early(ended))]
    EndedEarly {
        /// The role.
        role: Role,
        /// Its host, where several have this role.
        host: Option<String>,
        /// Why its loop ended.
        ended: Ended,
    },
    /// An agent sent what none sends in such a round: it is broken, or not wiregauge.
    #[error(
        "the {}{} {how}, which is a protocol error: its round was stopped",
        .role.name(), on(host)
    )]
    Broke {
        /// Its role.
        role: Role,
        /// Its host; `None`: this one.
        host: Option<String>,
        /// What it did.
        how: String,
    },
    /// A step before the round took too long.
    #[error("{who} did not finish {step} within {} s", tenths(*patience))]
    Late {
        /// Whose.
        who: String,
        /// Which.
        step: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The channel to a role's agent broke.
    #[error("the {}'s process{} is gone: {why}", .role.name(), on(host))]
    Gone {
        /// The role.
        role: Role,
        /// Its host, where several have this role.
        host: Option<String>,
        /// How.
        why: String,
    },
    /// Processes died.
    #[error("{}{}", before(after), .deaths.join("; "))]
    Died {
        /// How each of them did.
        deaths: Vec<String>,
        /// What had ended the round before, where that says more than the deaths.
        after: Option<Box<Fault>>,
    },
    /// The timestamp clock is not to be believed.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// Something else failed.
    #[error("{0}")]
    Failed(String),
}

fn early(ended: &Ended) -> Cow<'static, str> {
    match ended {
        Ended::Closed => "saw its connection closed by the other end".into(),
        Ended::Failed(errno) => {
            format!("lost its connection: {}", std::io::Error::from_raw_os_error(*errno)).into()
        }
        Ended::WarmingUp => {
            "was still warming up when the other end's time was over: use a longer \
                             --time or a smaller --warmup"
                .into()
        }
        Ended::Stopped | Ended::Count | Ended::Time => "stopped before its round was over".into(),
    }
}

/// Seconds to a tenth.
fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

fn on(host: &Option<String>) -> String {
    host.iter().map(|host| format!(" on {host}")).collect()
}

fn before(fault: &Option<Box<Fault>>) -> String {
    fault.iter().map(|fault| format!("{fault}; ")).collect()
}

fn shown(handled: &[Handled]) -> String {
    let shown = handled
        .iter()
        .take(MOST_SHOWN)
        .map(|Handled { role, messages, host }| format!("{} {messages}{}", role.name(), on(host)));
    shown.collect::<Vec<_>>().join(", ")
}

/// Messages that a rank has handled.
#[derive(Clone, Debug)]
pub struct Handled {
    /// Its role.
    pub role: Role,
    /// Messages.
    pub messages: u64,
    /// Its host; `None`: this one.
    pub host: Option<String>,
}

/// Errors that need no distinction any more become their sentence.
macro_rules! fault_from {
    ($($error:ty),+) => {$(
        impl From<$error> for Fault {
            fn from(error: $error) -> Fault {
                Fault::Failed(error.to_string())
            }
        }
    )+};
}
fault_from!(String, &str, std::io::Error, FrameError);

impl Fault {
    /// Something failed.
    pub fn new(sentence: impl Into<String>) -> Fault {
        Fault::Failed(sentence.into())
    }

    /// What an agent refused.
    pub fn of_agent(wrong_use: bool, sentence: String) -> Fault {
        if wrong_use { Fault::Refused(sentence) } else { Fault::Failed(sentence) }
    }

    /// Adds how processes died. That says more than how the others noticed, but where they all had
    /// to be killed; why a round stalled, did not begin or was interrupted, or what its agent did,
    /// stays with it.
    pub fn with_deaths(fault: Option<Fault>, deaths: Vec<Death>) -> Option<Fault> {
        if deaths.is_empty() {
            return fault;
        }
        let say_nothing = deaths.iter().all(|death| death.was_killed_here);
        let keeps = |fault: &Fault| {
            use Fault::*;
            say_nothing
                || matches!(fault, Interrupted | Stalled { .. } | Broke { .. } | Late { .. })
        };
        let deaths = deaths.into_iter().map(|death| death.how).collect();
        Some(Fault::Died { deaths, after: fault.filter(keeps).map(Box::new) })
    }

    /// The rank whose agent was gone, in words.
    pub fn gone(&self) -> Option<String> {
        let Fault::Gone { role, host, .. } = self else { return None };
        let on = host.as_ref().map(|host| format!(" on {host}")).unwrap_or_default();
        Some(format!("the {}{on}", role.name()))
    }

    /// Whether the user asked for something that cannot be.
    pub fn is_refused(&self) -> bool {
        match self {
            Fault::Refused(_) => true,
            Fault::Died { after, .. } => after.as_ref().is_some_and(|fault| fault.is_refused()),
            _ => false,
        }
    }

    /// Whether the user ended it.
    pub fn is_interrupted(&self) -> bool {
        match self {
            Fault::Interrupted => true,
            Fault::Died { after, .. } => after.as_ref().is_some_and(|fault| fault.is_interrupted()),
            _ => false,
        }
    }
}

/// How a process ended that did not end as it should.
#[derive(Clone, Debug)]
pub struct Death {
    /// In words.
    pub how: String,
    /// That it had to be killed here once the round was over, which says nothing of the cause.
    pub was_killed_here: bool,
}

impl Death {
    /// It ended by itself, or by somebody else.
    pub fn of(how: String) -> Death {
        Death { how, was_killed_here: false }
    }

    /// It did not exit in time.
    pub fn by_us(name: &str) -> Death {
        Death { how: format!("{name} did not exit and was killed"), was_killed_here: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_replace_what_the_others_noticed_and_add_to_a_stall_or_an_interruption() {
        let deaths = || vec![Death::of("the server's process was killed".to_string())];
        let said = |fault| Fault::with_deaths(fault, deaths()).map(|fault| fault.to_string());
        let closed = Fault::EndedEarly { role: Role::Client, host: None, ended: Ended::Closed };
        assert_eq!(said(Some(closed)).as_deref(), Some("the server's process was killed"));
        assert_eq!(
            said(Some(Fault::Interrupted)).as_deref(),
            Some("interrupted by the user; the server's process was killed")
        );
        let both = Fault::with_deaths(Some(Fault::Interrupted), deaths());
        assert!(both.is_some_and(|fault| fault.is_interrupted() && !fault.is_refused()));
        assert!(Fault::with_deaths(None, Vec::new()).is_none());
    }

    #[test]
    fn a_rank_that_is_gone_is_named() {
        let host = Some("here (rank 1)".to_string());
        let gone = Fault::Gone { role: Role::Node, host, why: "closed".to_string() };
        let killed = || Death::by_us("the process of node 0");
        let said = |deaths| Fault::with_deaths(Some(gone.clone()), deaths).unwrap().to_string();
        assert_eq!(
            said(vec![killed()]),
            "the node's process on here (rank 1) is gone: closed; the process of node 0 did not \
             exit and was killed"
        );
        let died = Death::of("node 1 died".to_string());
        let both = said(vec![died, killed()]);
        assert_eq!(both, "node 1 died; the process of node 0 did not exit and was killed");
        assert_eq!(gone.gone().as_deref(), Some("the node on here (rank 1)"));
        assert_eq!(Fault::Interrupted.gone(), None);
    }

    #[test]
    fn a_stall_names_the_role_and_how_far_both_have_come() {
        let handled = |role, messages, host: Option<&str>| Handled {
            role,
            messages,
            host: host.map(Into::into),
        };
        let stalled = Fault::Stalled {
            role: Role::Server,
            host: None,
            patience: Duration::from_millis(1500),
            handled: vec![handled(Role::Client, 7, None), handled(Role::Server, 5, Some("node07"))],
            is_paced: true,
        };
        assert_eq!(
            stalled.to_string(),
            "stalled: the server handled no message for 1.5 s (handled so far: client 7, server 5 \
             on node07): allow a longer --timeout, or use a lower rate"
        );
    }
}
