//! `--causes`: the causes of slow messages of a command whose messages are not split.

use super::*;
use causes::{FIRST, Hog, stop_now_and_then};
use wiregauge::explain::tail::TailCauses;

fn tails(scratch: &Scratch, line: &str) -> Vec<TailCauses> {
    let ended = wiregauge(scratch, &words(&format!("{line} --causes --out run")));
    assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    let record = read_record(&scratch.join("run")).unwrap();
    fs::remove_dir_all(scratch.join("run")).unwrap();
    for tail in &record.tails {
        let of_causes: u64 = tail.slow.causes.iter().map(|(_, number)| number).sum();
        assert_eq!(of_causes, tail.slow.count, "{tail:?}");
    }
    record.tails
}

#[test]
fn a_task_that_took_the_cpu_is_named_by_the_commands_themselves() {
    let Some(scratch) = scratch() else { return };
    // Few messages: a thread of that priority may have a CPU for 0.95 s of each.
    scratch.run_behind(&FIRST);
    let name = "wg-hog";
    for line in [
        "latency --transport tcp,shm --wait busy --cpus 0,1 --count 20000 --rounds 2",
        "load --transport tcp --rate 5k --wait busy --cpus 0,1 --count 2000 --rounds 2",
        "oneway --transport udp --rate 5k --wait block --cpus 0,1 --count 2000 --rounds 2",
    ] {
        // Of requests that come all the time many wait for another task that the kernel lets in for
        // the twentieth part of a second: longer than that.
        let ms = if line.contains("--rate") { [60, 60] } else { [1, 2] };
        let [burst, pause] = ms.map(std::time::Duration::from_millis);
        let _hog = Hog::with_bursts(name, 1, burst, pause);
        let found = tails(&scratch, line);
        let transports = if line.contains("shm") { 2 } else { 1 };
        assert_eq!(found.len(), transports, "{found:?}");
        for tail in &found {
            assert!(tail.messages > 1000 && tail.beyond == 0, "{tail:?}");
            assert!(named(&tail.slow, Cause::Task, name) > 0, "{line}: {:?}", tail.slow);
        }
    }
}

#[test]
fn a_process_that_was_stopped_is_named_and_a_quiet_one_has_no_such_cause() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&FIRST);
    let line = "latency --transport tcp --wait busy --count 100000 --rounds 1";
    let quiet = tails(&scratch, line);
    let never = [Cause::Stopped, Cause::Gap, Cause::Ahead, Cause::Generator];
    let wrong = quiet[0].slow.causes.iter().find(|(named, _)| never.contains(&named.cause));
    assert_eq!(wrong, None);
    let line = format!("{line} --causes --out run");
    let controller = Controller::start(&scratch, &words(&line));
    stop_now_and_then(&controller);
    let ended = controller.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("Causes of slow messages (above p99"), "{}", ended.stdout);
    let record = read_record(&scratch.join("run")).unwrap();
    fs::remove_dir_all(scratch.join("run")).unwrap();
    assert!(named(&record.tails[0].slow, Cause::Stopped, "") > 0, "{:?}", record.tails[0].slow);
}

#[test]
fn causes_that_cannot_be_found_are_refused_in_a_sentence() {
    let scratch = Scratch::new();
    for (line, says) in [
        ("bandwidth --causes", "--causes is not supported by bandwidth as it is"),
        ("latency --burst 4 --causes", "use latency with one message at a time"),
        ("latency --transport synthetic --causes", "synthetic simulates time"),
        ("explain latency --causes", "explain names the causes of slow messages by itself"),
    ] {
        let ended = wiregauge(&scratch, &words(line));
        assert_eq!(ended.code, Some(2), "{line}: {ended:?}");
        assert!(ended.stderr.contains(says), "{line}: {}", ended.stderr);
    }
    let copy = PublicCopy::new();
    fs::set_permissions(&scratch.0, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy.0);
    command.args(words("latency --transport unix --causes --count 100 --rounds 1 --json"));
    let ended = Controller::of(&scratch, command).end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("CAP_BPF and CAP_PERFMON"), "{}", ended.stderr);
}
