//! Two ends of a connection, and who is let in.

use super::super::identity::DerivedPair;
use super::*;
use rustls::{AlertDescription, CertificateError, Error};
use std::net::TcpListener;
use std::thread;
use std::time::UNIX_EPOCH;
use wiregauge_test_support::bounded::Bound;

const SOON: Duration = Duration::from_secs(10);

struct Met {
    agent: io::Result<Channel>,
    controller: io::Result<Channel>,
}

/// Both sides of one connection, each with whom it trusts.
fn meet(agent: &Identity, lets_in: &Identity, controller: &Identity, looks_for: &Identity) -> Met {
    meet_speaking(agent, lets_in, controller, looks_for, FRAMES)
}

fn meet_speaking(
    agent: &Identity,
    lets_in: &Identity,
    controller: &Identity,
    looks_for: &Identity,
    protocol: &[u8],
) -> Met {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let config = listening(agent, std::slice::from_ref(&lets_in.certificate), FRAMES).unwrap();
    let accepting = thread::spawn(move || {
        let (socket, _) = listener.accept().unwrap();
        accept(socket, Instant::now() + SOON, |_| Ok(config))
    });
    let socket = TcpStream::connect(at).unwrap();
    let deadline = Instant::now() + SOON;
    let controller = dial(socket, deadline, controller, &looks_for.certificate, protocol);
    Met { agent: accepting.join().unwrap(), controller }
}

/// What the dialling side hears first: in TLS 1.3 it learns only then that it was not let in.
fn first_word((mut reader, _writer): Channel) -> Error {
    reader.deadline = Some(Instant::now() + SOON);
    let error = reader.read(&mut [0]).unwrap_err();
    error.downcast().unwrap()
}

/// Why rustls did not connect.
fn wrong(met: io::Result<Channel>) -> Error {
    met.map(drop).unwrap_err().downcast().unwrap()
}

fn expired() -> Identity {
    Identity::valid(UNIX_EPOCH, UNIX_EPOCH + Duration::from_secs(1_000_000)).unwrap()
}

#[test]
fn a_clock_beyond_what_a_certificate_holds_is_refused_in_a_sentence() {
    let year_10000 = UNIX_EPOCH + Duration::from_secs(253_402_300_800);
    for (from, until) in [
        (UNIX_EPOCH, year_10000),
        (year_10000, year_10000),
        (UNIX_EPOCH - Duration::from_secs(1), UNIX_EPOCH),
    ] {
        let refused = Identity::valid(from, until).map(drop).unwrap_err();
        assert!(refused.contains("shows no valid date"), "{refused}");
    }
}

#[test]
fn what_one_side_writes_the_other_reads_both_ways_at_once() {
    let _bound = Bound::new();
    const MUCH: usize = 8 << 20;
    let (agent, controller) = (Identity::fresh().unwrap(), Identity::fresh().unwrap());
    let met = meet(&agent, &controller, &controller, &agent);
    let channels = [met.agent.unwrap(), met.controller.unwrap()];
    let reader = &channels[0].0;
    assert_eq!(reader.certificate().unwrap(), controller.certificate);
    assert_eq!(locked(&reader.shared.connection).alpn_protocol(), Some(FRAMES));
    let threads = channels.map(|(mut reader, mut writer)| {
        let writing = thread::spawn(move || {
            let piece: Vec<u8> = (0..=250).collect();
            let all = piece.iter().cycle().take(MUCH).copied().collect::<Vec<u8>>();
            // Short records shift the long ones in what the socket gives at once.
            let mut rest = &all[..];
            for length in [1, 300, PIECE, PIECE - 7].into_iter().cycle() {
                let (record, after) = rest.split_at(length.min(rest.len()));
                writer.write_all(record).unwrap();
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            writer.close();
        });
        let reading = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).unwrap();
            all
        });
        (writing, reading)
    });
    for (writing, reading) in threads {
        writing.join().unwrap();
        let all = reading.join().unwrap();
        assert_eq!(all.len(), MUCH);
        assert!(all.iter().enumerate().all(|(at, byte)| at % 251 == usize::from(*byte)));
    }
}

#[test]
fn one_who_is_not_known_is_not_let_in_and_hears_so() {
    let _bound = Bound::new();
    let (agent, controller, other) =
        (Identity::fresh().unwrap(), Identity::fresh().unwrap(), Identity::fresh().unwrap());
    let met = meet(&agent, &other, &controller, &agent);
    assert!(matches!(wrong(met.agent), Error::InvalidCertificate(_)));
    let heard = first_word(met.controller.unwrap());
    assert_eq!(heard, Error::AlertReceived(AlertDescription::UnknownCA));
    // And the other way round.
    let met = meet(&agent, &controller, &controller, &other);
    assert!(matches!(wrong(met.controller), Error::InvalidCertificate(_)));
    assert!(met.agent.is_err());
}

#[test]
fn one_whose_time_is_over_is_not_let_in_and_hears_so() {
    let _bound = Bound::new();
    let (agent, controller) = (Identity::fresh().unwrap(), expired());
    let met = meet(&agent, &controller, &controller, &agent);
    assert!(met.agent.is_err());
    let heard = first_word(met.controller.unwrap());
    assert_eq!(heard, Error::AlertReceived(AlertDescription::CertificateExpired));
    let (agent, controller) = (expired(), Identity::fresh().unwrap());
    let met = meet(&agent, &controller, &controller, &agent);
    let Error::InvalidCertificate(wrong) = wrong(met.controller) else { panic!() };
    assert!(matches!(wrong, CertificateError::ExpiredContext { .. }), "{wrong:?}");
}

#[test]
fn who_knows_a_secret_is_let_in_and_nobody_else() {
    let _bound = Bound::new();
    let both = |secret: u8| {
        let ends = DerivedPair::of_secret(&[secret; 32]).unwrap();
        [ends.agent, ends.controller]
    };
    let ([agent, controller], [agent_there, controller_there]) = (both(1), both(1));
    assert_eq!(agent.certificate, agent_there.certificate, "both sides make the same bytes");
    let met = meet(&agent, &controller, &controller_there, &agent_there);
    assert!(met.agent.is_ok() && met.controller.is_ok());
    let [agent_else, controller_else] = both(2);
    assert_ne!(agent.certificate, agent_else.certificate);
    assert_ne!(
        agent.certificate, controller.certificate,
        "an answer cannot be sent back as a question"
    );
    let met = meet(&agent, &controller, &controller_else, &agent_else);
    assert!(met.agent.is_err() && met.controller.is_err());
}

#[test]
fn another_protocol_is_refused() {
    let _bound = Bound::new();
    let (agent, controller) = (Identity::fresh().unwrap(), Identity::fresh().unwrap());
    let met = meet_speaking(&agent, &controller, &controller, &agent, b"wiregauge/99");
    assert!(met.agent.is_err());
    assert_eq!(
        wrong(met.controller),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol)
    );
}

#[test]
fn one_who_is_slow_is_given_up_however_it_drips() {
    let _bound = Bound::new();
    let agent = Identity::fresh().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let dripping = thread::spawn(move || {
        let mut socket = TcpStream::connect(at).unwrap();
        // The beginning of a record of 512 B that never ends.
        let begun = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        begun.iter().chain([0; 500].iter()).all(|byte| {
            thread::sleep(Duration::from_millis(20));
            socket.write_all(&[*byte]).is_ok()
        })
    });
    let (socket, _) = listener.accept().unwrap();
    let deadline = Instant::now() + Duration::from_millis(300);
    let accepted = accept(socket, deadline, |_| listening(&agent, &[], FRAMES));
    assert_eq!(accepted.map(drop).unwrap_err().kind(), ErrorKind::TimedOut);
    assert!(!dripping.join().unwrap(), "it was cut off");
}
