//! `explain` of a user without rights, and with the two that it needs.

use super::*;

const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// A place that anybody may write to, and a program that anybody may run.
struct Place {
    scratch: Scratch,
    program: PublicCopy,
}

impl Place {
    fn new() -> Place {
        let scratch = Scratch::new();
        fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).unwrap();
        Place { scratch, program: PublicCopy::new() }
    }

    /// As nobody, with these capabilities; `None`: this user may not become nobody.
    fn run(&self, capabilities: &[&str], line: &str) -> Option<Ended> {
        let mut command = Command::new("setpriv");
        command.args(NOBODY).args(capabilities).arg(&self.program.0).args(words(line));
        let ended = Controller::of(&self.scratch, command).end();
        if ended.stderr.contains("setpriv:") {
            eprintln!("skipped: {}", ended.stderr);
            return None;
        }
        Some(ended)
    }
}

#[test]
fn a_user_without_rights_has_the_stages_that_sockets_are_stamped_with() {
    let place = Place::new();
    let leg = [
        "call, transport and IP send",
        "device queue (qdisc) and driver",
        "wire and interrupt",
        "IP and transport receive, wake-up and copy",
    ];
    for line in [
        "latency --transport tcp --wait busy",
        "latency --transport tcp --wait block",
        "latency --transport udp --wait busy",
        "latency --transport udp --wait block --size 4KiB",
    ] {
        let own = format!("explain {line} --count 1000 --rounds 1 --out run");
        let Some(ended) = place.run(&[], &own) else { return };
        let found = explained(&place.scratch, &ended);
        check_sums_of(&found);
        let expected = [&leg[..], &leg, &["to the application", "probes"]].concat();
        assert_eq!(names(&found), expected, "{line}");
        // Of 1000 less the warm-up, one of 32 is left out.
        assert!(found.messages > 700, "{line}: {found:?}");
        assert!(found.disordered * 100 < found.messages, "{line}: {}", found.disordered);
        assert!(found.not_traced.contains("CAP_BPF and CAP_PERFMON"), "{}", found.not_traced);
        assert!(found.slow.causes.is_empty());
        assert!(ended.stdout.contains("with these rights explain has"), "{}", ended.stdout);
        // A median is spent in each stage but the device queue, which loopback lacks.
        let middle = |one: &wiregauge::explain::StageFigures| one.quantiles_ns[3];
        let is_short = |name: &str| name.starts_with("device queue") || name == "probes";
        let empty = found.stages.iter().find(|one| !is_short(&one.name) && middle(one) <= 0.0);
        assert_eq!(empty.map(|one| &one.name), None, "{line}");
    }
}

/// As [`check_sums`], without causes.
fn check_sums_of(found: &Explanation) {
    assert!(found.sum_error < 1e-3, "{found:?}");
    assert!(found.incomplete * 20 < found.messages, "{} incomplete", found.incomplete);
    let sum: f64 = found.stages.iter().map(|stage| stage.best_ns).sum();
    assert!((sum / found.total.best_ns - 1.0).abs() < 1e-6);
}

#[test]
fn what_needs_rights_is_refused_with_what_would_do() {
    let place = Place::new();
    for line in [
        "latency --transport unix",
        "latency --transport shm",
        "oneway --transport tcp",
        "latency --transport tcp --threads 2",
        "latency --transport tcp --size 64KiB",
    ] {
        let own = format!("explain {line} --count 1000 --rounds 1 --json");
        let Some(ended) = place.run(&[], &own) else { return };
        assert_eq!(ended.code, Some(4), "{line}: {ended:?}");
        for says in ["CAP_BPF and CAP_PERFMON", "explain splits latency over tcp or udp alone"] {
            assert!(ended.stderr.contains(says), "{line}: {}", ended.stderr);
        }
    }
}

#[test]
fn two_capabilities_are_enough_for_all_stages() {
    if scratch().is_none() {
        return;
    }
    let place = Place::new();
    let capabilities = ["--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon"];
    let line = "explain latency --count 2000 --rounds 1 --json";
    let Some(with) = place.run(&capabilities, line) else { return };
    assert_eq!(with.code, Some(0), "{with:?}");
    let record: serde_json::Value = serde_json::from_str(&with.stdout).unwrap();
    assert!(record["explanation"]["messages"].as_u64().unwrap() > 1000);
    assert!(record["explanation"]["not_traced"].is_null());
}
