//! Causes that a test makes, and that are found by name.

use super::*;

/// A thread that takes a CPU again and again from those that run at [`FIRST`], by a name that no
/// other has.
pub struct Hog {
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hog {
    /// Takes the CPU for a millisecond, often enough for a round of a few milliseconds.
    pub fn start(name: &str, cpu: usize) -> Hog {
        Hog::with_bursts(name, cpu, Duration::from_millis(1), Duration::from_millis(2))
    }

    /// Takes the CPU for so long, with such pauses.
    pub fn with_bursts(name: &str, cpu: usize, burst: Duration, pause: Duration) -> Hog {
        let end = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&end);
        let take = move || {
            run_before_others(cpu);
            while !told.load(Ordering::Relaxed) {
                let until = Instant::now() + burst;
                while Instant::now() < until {}
                std::thread::sleep(pause);
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(take).unwrap();
        Hog { end, thread: Some(thread) }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_task_on_the_cpu_of_an_end_is_named() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&FIRST);
    let name = "wg-hog";
    let _hog = Hog::start(name, 1);
    let line = "latency --transport tcp --wait busy --cpus 0,1 --count 20000 --rounds 2";
    let found = explain(&scratch, line);
    check(&found);
    assert!(named(&found.slow, Cause::Task, name) > 0, "{:?}", found.slow);
}

/// Before all tasks of the usual priority: what else runs on this machine makes no message slow.
pub const FIRST: [&str; 3] = ["chrt", "-f", "1"];
/// Before these.
const BEFORE: [&str; 3] = ["chrt", "-f", "2"];

/// Has this thread run on a CPU at [`BEFORE`].
fn run_before_others(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).unwrap();
    take_priority();
}

/// Has this thread run at [`BEFORE`].
fn take_priority() {
    let thread = gettid().as_raw_nonzero().to_string();
    let [chrt, policy, priority] = BEFORE;
    Command::new(chrt).args([policy, "-p", priority, &thread]).status().unwrap();
}

/// Stops an end of the run again and again for a moment, once it measures; from a thread that no
/// end of the run keeps from its CPU.
pub fn stop_now_and_then(controller: &Controller) {
    take_priority();
    controller.await_messages(2000);
    let agent = controller.agents()[0];
    for _ in 0..20 {
        agent.signal(Signal::STOP);
        std::thread::sleep(Duration::from_micros(250));
        agent.signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(3));
    }
    let thread = gettid().as_raw_nonzero().to_string();
    Command::new("chrt").args(["-o", "-p", "0", &thread]).status().unwrap();
}

/// A thread that now and then has thousands of timers of a CPU run out at once.
fn storm_of_timers(cpu: usize, end: &AtomicBool) {
    run_before_others(cpu);
    let one = || timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC).unwrap();
    let timers: Vec<OwnedFd> = (0..800).map(|_| one()).collect();
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    while !end.load(Ordering::Relaxed) {
        let now = clock_gettime(ClockId::Monotonic);
        let at = now.tv_nsec + 3_000_000;
        let it_value =
            Timespec { tv_sec: now.tv_sec + at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
        for timer in &timers {
            let once = Itimerspec { it_interval: zero, it_value };
            timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &once).unwrap();
        }
        std::thread::sleep(Duration::from_millis(4));
    }
}

#[test]
fn a_storm_of_timer_interrupts_is_named() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&FIRST);
    let by_timer = |found: &Explanation| named(&found.slow, Cause::Timer, "on CPU 1");
    let line = "latency --transport tcp --wait busy --cpus 0,1 --count 30000 --rounds 1";
    let quiet = explain(&scratch, line);
    let end = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| storm_of_timers(1, &end));
        let found = catch_unwind(AssertUnwindSafe(|| explain(&scratch, line)));
        end.store(true, Ordering::Relaxed);
        found
    });
    let found = found.unwrap_or_else(|panic| resume_unwind(panic));
    check(&found);
    let (with, without) = (by_timer(&found), by_timer(&quiet));
    assert!(with > 2 * without + 5, "{without} without: {:?}", found.slow);
}

/// A run beside which the network works for others; CPU 1 takes the packets of these devices.
fn beside_a_flood(scratch: &Scratch, devices: &str) -> Explanation {
    // A veth pair whose packets CPU 1 takes, and datagrams for nobody from CPU 0. Ten taps look at
    // each by a filter that multiplies 4095 times: the SoftIRQ lasts longer than it takes to send.
    let flood = "import ctypes, socket, struct, time\n\
                 word = lambda code, k: struct.pack('HBBI', code, 0, 0, k)\n\
                 code = ctypes.create_string_buffer(word(0x24, 3) * 4095 + word(6, 0))\n\
                 program = struct.pack('HxxxxxxP', 4096, ctypes.addressof(code))\n\
                 taps = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(10)]\n\
                 for tap in taps:\n    tap.setsockopt(socket.SOL_SOCKET, 26, program)\n    \
                 tap.bind(('wg1', 3))\n\
                 s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                 while True:\n    for i in range(4): s.sendto(b'x' * 64, ('10.9.9.2', 9))\n    \
                 time.sleep(0.002)\n";
    fs::write(scratch.join("flood.py"), flood).unwrap();
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let line = "explain latency --transport tcp --wait busy --cpus 0,1 --count 30000 --rounds 1";
    let (first, before) = (FIRST.join(" "), BEFORE.join(" "));
    let at = scratch.join("flood.py");
    let script = format!(
        "ip link set lo up; ip link add wg0 type veth peer name wg1; ip link set wg1 up; \
         ip addr add 10.9.9.1/24 dev wg0; ip link set wg0 up; \
         ip neigh add 10.9.9.2 dev wg0 lladdr 2:0:0:0:0:9; \
         mkdir -p sys; mount -t sysfs none sys; for device in {devices}; do \
         echo 2 > sys/class/net/$device/queues/rx-0/rps_cpus; done; umount sys; \
         {before} taskset -c 0 python3 {} & flood=$!; \
         {first} {program} {line} --out run; code=$?; kill $flood; exit $code",
        at.display()
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "sh", "-c", &script]);
    let found = explained(scratch, &Controller::of(scratch, command).end());
    check(&found);
    found
}

fn has_python() -> bool {
    let is_there = Command::new("python3").args(["-c", ""]).status().is_ok();
    if !is_there {
        eprintln!("skipped: python3 is not installed");
    }
    is_there
}

#[test]
fn work_that_the_network_does_on_the_cpu_for_others_is_named() {
    let Some(scratch) = scratch().filter(|_| has_python()) else { return };
    let found = beside_a_flood(&scratch, "wg1");
    assert!(named(&found.slow, Cause::Softirq, "NET_RX on CPU 1") > 0, "{:?}", found.slow);
}

#[test]
fn work_for_others_that_a_packet_of_ours_waits_for_in_one_softirq_is_named() {
    let Some(scratch) = scratch().filter(|_| has_python()) else { return };
    // Those of the run are put behind the others in the backlog of the CPU.
    let found = beside_a_flood(&scratch, "wg1 lo");
    let by_others = named(&found.slow, Cause::Softirq, "NET_RX on CPU 1");
    let gaps = named(&found.slow, Cause::Gap, "");
    assert!(by_others > 2 * gaps && by_others * 2 > found.slow.count, "{:?}", found.slow);
}

#[test]
fn a_full_socket_buffer_and_a_generator_that_cannot_keep_its_rate_are_named() {
    let Some(scratch) = scratch() else { return };
    // A message takes 0.7 ms over this link, half of the time in which the next one comes: those
    // behind several others wait for milliseconds, longer than for anything else.
    let link = "ip link set lo mtu 1500 up && \
                tc qdisc add dev lo root tbf rate 200mbit burst 3kb limit 2mb";
    let script = format!("{link} && exec {} \"$@\"", FIRST.join(" "));
    scratch.run_behind(&["unshare", "--net", "sh", "-c", &script, "sh"]);
    let line = "oneway --transport tcp --wait block --size 16KiB --send-buffer 16KiB --rate 800";
    let line = format!("{line} --arrivals poisson --timer nanosleep --count 500 --rounds 1");
    let found = explain(&scratch, &line);
    check(&found);
    let full = named(&found.slow, Cause::Ahead, "full send buffer");
    assert!(full * 2 > found.slow.count, "{:?}", found.slow);
    assert_eq!(named(&found.slow, Cause::Generator, ""), 0, "{:?}", found.slow);
    scratch.run_behind(&FIRST);
    // No CPU sends two million messages of this size a second.
    let line = "oneway --transport tcp --rate 2M --size 1KiB --count 20000 --rounds 1";
    let found = explain(&scratch, line);
    check(&found);
    let late = named(&found.slow, Cause::Generator, "busy with other messages");
    assert!(late * 2 > found.slow.count, "{:?}", found.slow);
}

#[test]
fn a_full_receive_buffer_is_named() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&FIRST);
    // It keeps the receiver from its CPU for longer than a buffer takes to fill, and than other
    // things make a message wait.
    let burst = Duration::from_millis(5);
    let _hog = Hog::with_bursts("wg-hog", 1, burst, burst);
    for line in [
        "tcp --size 16KiB --receive-buffer 16KiB --wait block",
        "unix --size 16KiB --wait block",
        "unix --size 16KiB --check",
        "unixgram --size 16KiB --check",
    ] {
        let how = "--cpus 0,1 --outstanding 64 --count 3000 --rounds 1";
        let found = explain(&scratch, &format!("oneway --transport {line} {how}"));
        check_sums(&found);
        // A receiver that polls finds about one of a hundred before its sender announces it.
        let share = if line.contains("--check") { 20 } else { 100 };
        let most = if line.starts_with("tcp") { 0 } else { found.messages / share };
        assert!(found.disordered <= most, "{line}: {} disordered", found.disordered);
        // TCP may have it in its own buffer, or not take it since that is full too.
        let is_of_buffer = |who: &str| who.ends_with("full receive buffer of the server");
        let own = found.slow.causes.iter().filter(|(one, _)| is_of_buffer(&one.who));
        let messages: u64 = own.map(|(_, number)| number).sum();
        assert!(messages > 0, "{line}: {:?}", found.slow);
    }
}

#[test]
fn a_task_on_the_cpu_of_a_poller_in_memory_is_named() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&FIRST);
    let name = "wg-hog";
    let _hog = Hog::start(name, 1);
    let line = "latency --transport shm --wait busy --cpus 0,1 --count 100000 --rounds 1";
    let found = explain(&scratch, line);
    check(&found);
    let slowest = &found.slowest[0];
    assert_eq!(slowest.cause.cause, Cause::Task, "{slowest:?}");
    assert!(named(&found.slow, Cause::Task, name) > 0, "{:?}", found.slow);
}

#[test]
fn a_process_that_was_stopped_for_a_moment_is_named() {
    let Some(scratch) = scratch() else { return };
    scratch.run_behind(&FIRST);
    let line = "explain latency --transport tcp --wait busy --count 100000 --rounds 1 --out run";
    let controller = Controller::start(&scratch, &words(line));
    // The traced round is one of the two.
    for _ in 0..2 {
        stop_now_and_then(&controller);
    }
    let found = explained(&scratch, &controller.end());
    check(&found);
    assert!(named(&found.slow, Cause::Stopped, "") > 0, "{:?}", found.slow);
}

#[test]
fn a_packet_that_waits_in_the_queue_of_its_device_is_named() {
    let Some(scratch) = scratch() else { return };
    // Now and then the bucket of the device fills more slowly than messages come.
    let slow = "tc qdisc change dev lo root tbf rate 20mbit burst 4kb limit 64kb; sleep 0.001";
    let fast = "tc qdisc change dev lo root tbf rate 10gbit burst 1mb limit 1mb; sleep 0.02";
    let program = env!("CARGO_BIN_EXE_wiregauge");
    let line = "explain latency --transport tcp --wait busy --count 40000 --rounds 1 --out run";
    let script = format!(
        "ip link set lo up; tc qdisc add dev lo root tbf rate 10gbit burst 1mb limit 1mb; \
         {before} sh -c 'while :; do {slow}; {fast}; done' & shaper=$!; \
         {first} {program} {line}; code=$?; kill $shaper; exit $code",
        before = BEFORE.join(" "),
        first = FIRST.join(" "),
    );
    let mut command = Command::new("unshare");
    command.args(["--net", "sh", "-c", &script]);
    let found = explained(&scratch, &Controller::of(&scratch, command).end());
    check(&found);
    assert!(named(&found.slow, Cause::Qdisc, "") > 0, "{:?}", found.slow);
}
