//! What is left of shared memory whose two ends are killed.

use super::*;
use std::io::{BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, ChildStdin, ChildStdout};
use wiregauge::clock::exchange::Local;
use wiregauge::clock::{Source, Ticks, Timebase};
use wiregauge::control::case::CaseFrame;
use wiregauge::control::protocol::{Assignment, ThreadSlot};
use wiregauge::pattern::latency;
use wiregauge::transport::{Blob, Role, TransportKind};
use wiregauge::units::Span;
use wiregauge_test_support::bounded::Bound;

/// An end of a round over shared memory, of which this test is the controller.
struct End {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl End {
    /// One whose memory has been made where it is the server's; its address.
    fn opened(role: Role) -> (End, Blob) {
        let secret = [7; 32];
        let mut agent = Command::new(env!("CARGO_BIN_EXE_wiregauge"));
        agent.arg(wiregauge::agent::serve::RUN_ROLE).env(SECRET_VARIABLE, "07".repeat(32));
        let mut child = agent.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut end = End { child, input, output };
        let welcome =
            end.ask(&ToAgent::Hello { magic: MAGIC, version: VERSION, secret, asks_program: true });
        assert!(matches!(welcome, FromAgent::Welcome { .. }), "{welcome:?}");
        let mut request = latency::request(Default::default());
        let shm = TransportKind::ALL.iter().find(|one| one.name() == "shm");
        request.transports = vec![*shm.unwrap()];
        let case = request.plan().unwrap().cases.remove(0);
        let time = Timebase::nanoseconds(Ticks(0));
        let assignment = Assignment {
            role,
            rank: role.pick(0, 1),
            slots: vec![ThreadSlot { cpu: None, arena: "".into(), stamps: None }],
            others: Vec::new(),
            server_arena: None,
            remote_rows: Some(1000),
            site: None,
            run: 0,
            cookie: [7; 32],
            clock: Local { source: Source::MonotonicRaw, time, injected_error: None },
            epoch_of_day_ns: None,
            noise: Span(0),
            overhead_messages: 0,
            trace: None,
        };
        let open = ToAgent::Open(Box::new(CaseFrame::from(&case)), Box::new(assignment));
        let FromAgent::Opened(mut addresses) = end.ask(&open) else { panic!("{role:?}") };
        (end, addresses.remove(0).remove(0))
    }

    fn ask(&mut self, message: &ToAgent) -> FromAgent {
        frame::write(&mut self.input, message).unwrap();
        self.input.flush().unwrap();
        frame::read(&mut self.output).unwrap()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processes that have mapped the memory of this inode. Other tests have rings of their own.
fn mappings(inode: u64) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let maps = all.filter_map(|entry| fs::read_to_string(entry.path().join("maps")).ok());
    let is_ours = |line: &str| {
        line.contains("wiregauge") && line.split_whitespace().nth(4) == Some(&inode.to_string())
    };
    maps.filter(|maps| maps.lines().any(is_ours)).count()
}

fn named_in_dev_shm() -> Vec<String> {
    let all = fs::read_dir("/dev/shm").unwrap().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains("wiregauge")).collect()
}

#[test]
fn nothing_is_left_of_shared_memory_whose_ends_are_killed_before_or_after_they_are_connected() {
    let _bound = Bound::new();
    for is_connected in [false, true] {
        let (server, address) = End::opened(Role::Server);
        let (mut client, _) = End::opened(Role::Client);
        let inode = fs::metadata(address.text().unwrap()).unwrap().ino();
        if is_connected {
            let connected = client.ask(&ToAgent::Connect(vec![vec![address]]));
            assert!(matches!(connected, FromAgent::Connected(_)), "{connected:?}");
        }
        assert_eq!(mappings(inode), if is_connected { 2 } else { 1 });
        drop((server, client));
        assert_eq!(mappings(inode), 0);
        assert!(named_in_dev_shm().is_empty(), "{:?}", named_in_dev_shm());
    }
}
