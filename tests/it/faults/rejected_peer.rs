//! What an agent does with somebody who is not its controller.

use super::*;
use wiregauge_test_support::bounded::{LIMIT, end};

/// Starts an agent by hand, writes bytes to it and closes (or holds) its input.
fn by_hand(secret: Option<&str>, bytes: &[u8], hold: bool) -> (Option<i32>, Vec<u8>, String) {
    use std::io::{Read, Write};
    let mut agent = Command::new(env!("CARGO_BIN_EXE_wiregauge"));
    agent
        .arg(wiregauge::agent::serve::RUN_ROLE)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // One that sshd has started is told the secret by its controller.
    agent.env_remove(wiregauge::host::SSH_CONNECTION);
    match secret {
        Some(secret) => agent.env(SECRET_VARIABLE, secret),
        None => agent.env_remove(SECRET_VARIABLE),
    };
    let mut agent = agent.spawn().unwrap();
    let mut input = agent.stdin.take();
    let _ = input.as_mut().unwrap().write_all(bytes);
    if !hold {
        input = None;
    }
    let code = end(&mut agent, LIMIT).code();
    drop(input);
    let (mut frames, mut text) = (Vec::new(), String::new());
    agent.stdout.take().unwrap().read_to_end(&mut frames).unwrap();
    agent.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (code, frames, text)
}

/// What an agent refused.
fn refusal(frames: &[u8]) -> String {
    match frame::read::<FromAgent>(&mut &frames[..]).unwrap() {
        FromAgent::Refused { wrong_use: true, sentence } => sentence,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_agent_refuses_who_is_not_its_controller() {
    let hello = |magic, version, secret| {
        let mut bytes = Vec::new();
        frame::write(&mut bytes, &ToAgent::Hello { magic, version, secret, asks_program: false })
            .unwrap();
        bytes
    };
    let (secret, hex) = ([7; 32], "07".repeat(32));
    for (known, bytes, said) in [
        (Some(hex.as_str()), hello(MAGIC, VERSION + 1, secret), "speaks version"),
        (Some(&hex), hello(MAGIC, VERSION, [8; 32]), "secret does not match"),
        (Some("07"), hello(MAGIC, VERSION, secret), "secret does not match"),
        (None, hello(MAGIC, VERSION, secret), "secret does not match"),
        (None, hello(*b"wireshrk", VERSION, secret), "is not wiregauge"),
        (None, b"GET / HTTP/1.1\r\n\r\n".to_vec(), "at most 1048576 B"),
        (None, [4, 0, 0, 0, 255, 255, 255, 255].to_vec(), "invalid control frame"),
        (None, [3, 0, 0, 0, 1, 2].to_vec(), "the control channel failed"),
    ] {
        // Refused at once, also by an agent whose controller holds the channel open.
        let hold = said != "the control channel failed";
        let (code, frames, _) = by_hand(known, &bytes, hold);
        assert_eq!(code, Some(2), "{said}");
        let sentence = refusal(&frames);
        assert!(sentence.contains(said) && !sentence.contains('\n'), "{said}: {sentence}");
    }
}

#[test]
fn an_agent_that_nobody_greets_says_so_and_ends() {
    for (bytes, hold) in [(&b""[..], false), (b"", true), (&[9, 0], true)] {
        let (code, frames, said) = by_hand(None, bytes, hold);
        assert_eq!(code, Some(2), "{said}");
        assert!(frames.is_empty());
        assert_eq!(
            said,
            "wiregauge: no controller greeted this agent: wiregauge starts its agents itself\n"
        );
    }
}
