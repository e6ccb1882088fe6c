//! What a paired controller sends to an agent daemon: frames from anywhere are let through or
//! refused in one sentence, and no number of them frees a session of its limits.

use wiregauge::control::frame::read_body;
use wiregauge::pattern::registry;
use wiregauge::remote::daemon::caps::{Caps, Inspector, SessionState};

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let mut channel = data;
    let mut inspector = Inspector::new(Caps::default(), registry::find);
    while let Ok(body) = read_body(&mut channel) {
        if let Err(sentence) = inspector.admit(&body) {
            assert!(!sentence.is_empty() && !sentence.contains('\n'));
            return;
        }
        let is_bounded = inspector.patience().is_some();
        assert!(is_bounded || inspector.state == SessionState::AnsweringClock);
    }
}
