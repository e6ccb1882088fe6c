//! How this host's clock of the day (CLOCK_REALTIME) is kept right: what the kernel says of it, and
//! which daemons there are.

use super::Tree;
use crate::child;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::process::{Command, Stdio};

/// The daemons that keep a clock right, by what they do it.
const DAEMONS: [(&str, [&str; 4]); 2] = [
    ("NTP", ["chronyd", "ntpd", "openntpd", "systemd-timesyncd"]),
    ("PTP", ["ptp4l", "phc2sys", "timemaster", "ts2phc"]),
];
/// Characters of a program's name that `/proc/PID/comm` shows.
const COMM: usize = 15;
/// The one that can be asked what it knows.
const PTP4L: &str = "ptp4l (PTP)";

/// How CLOCK_REALTIME is kept right. What the host does not show is `None` or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Discipline {
    /// Whether the kernel was told that it is right (adjtimex(2): STA_UNSYNC is clear).
    pub synchronized: Option<bool>,
    /// The most that it is wrong by, as its daemon told the kernel, which adds 500 ppm since.
    pub max_error_ns: Option<f64>,
    /// What it is wrong by in the daemon's estimate.
    pub estimated_error_ns: Option<f64>,
    /// What the kernel makes it run fast by against its counter, for good.
    pub frequency_ppm: Option<f64>,
    /// What is still to be slewed in.
    pub pending_ns: Option<f64>,
    /// Daemons that run and keep a clock, each with its protocol.
    pub daemons: Vec<String>,
    /// Clocks of network cards: `ptp0 (mlx5_ptp)`.
    pub ptp_devices: Vec<String>,
    /// What ptp4l's clock is from its master, where it runs and answers.
    pub ptp_offset_ns: Option<f64>,
}

impl Discipline {
    /// This host's.
    pub fn read() -> Discipline {
        let mut found = Discipline::read_from(&Tree::default());
        if found.daemons.iter().any(|daemon| daemon == PTP4L) {
            found.ptp_offset_ns = ask_ptp4l();
        }
        match kernel() {
            Some((timex, state)) => found.with(&timex, state),
            None => found,
        }
    }

    /// What files tell, from another tree of them.
    pub fn read_from(tree: &Tree) -> Discipline {
        let comm = |process| tree.text(&format!("/proc/{process}/comm"));
        let running: BTreeSet<String> =
            tree.numbered("/proc", "").into_iter().filter_map(comm).collect();
        let known = DAEMONS.iter().flat_map(|(by, names)| names.map(|name| (name, by)));
        let runs = |name: &str| running.contains(&name[..name.len().min(COMM)]);
        let running = known.filter(|(name, _)| runs(name));
        let mut daemons: Vec<String> = running.map(|(name, by)| format!("{name} ({by})")).collect();
        daemons.sort();
        let devices = tree.names("/sys/class/ptp").into_iter().map(|name| {
            match tree.text(&format!("/sys/class/ptp/{name}/clock_name")) {
                Some(clock) => format!("{name} ({clock})"),
                None => name,
            }
        });
        Discipline { daemons, ptp_devices: devices.collect(), ..Discipline::default() }
    }

    /// The same with what the kernel says (adjtimex(2), include/uapi/linux/timex.h).
    fn with(self, timex: &libc::timex, state: libc::c_int) -> Discipline {
        let unit = if timex.status & libc::STA_NANO != 0 { 1.0 } else { 1000.0 };
        let us = |us: libc::c_long| us as f64 * 1000.0;
        // `freq` has 16 bits behind the point; `tick` is in us of a hundredth of a second.
        let frequency_ppm = timex.freq as f64 / 65_536.0 + (timex.tick - 10_000) as f64 * 100.0;
        let unsynchronized = timex.status & libc::STA_UNSYNC != 0 || state == libc::TIME_ERROR;
        Discipline {
            synchronized: Some(!unsynchronized),
            max_error_ns: Some(us(timex.maxerror)),
            estimated_error_ns: Some(us(timex.esterror)),
            frequency_ppm: Some(frequency_ppm),
            pending_ns: Some(timex.offset as f64 * unit),
            ..self
        }
    }

    /// What the clock may be wrong by as its own daemons say: the kernel's greatest error, and
    /// what ptp4l is off its master.
    ///
    /// Errors: it is not kept right; a sentence.
    pub fn stated_error_ns(&self) -> Result<f64, String> {
        if let (Some(true), Some(most)) = (self.synchronized, self.max_error_ns) {
            return Ok(most + self.ptp_offset_ns.unwrap_or(0.0).abs());
        }
        let daemons = match self.daemons.as_slice() {
            [] => "no time daemon runs".to_string(),
            some => format!("running: {}", some.join(", ")),
        };
        Err(format!(
            "--clock ptp needs a clock that PTP or NTP keeps right, and the kernel says that \
             CLOCK_REALTIME is not synchronized here ({daemons}): start PTP or NTP, or use \
             --clock tsc"
        ))
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |ns: f64| format!("{} us", ns / 1000.0);
        f.write_str(match self.synchronized {
            None => "CLOCK_REALTIME: the kernel reports nothing",
            Some(true) => "CLOCK_REALTIME is synchronized",
            Some(false) => "CLOCK_REALTIME is not synchronized",
        })?;
        let errors = self.max_error_ns.zip(self.estimated_error_ns);
        if let Some((most, likely)) = errors.filter(|_| self.synchronized == Some(true)) {
            write!(f, ": error at most {}, likely {}", us(most), us(likely))?;
        }
        if let Some(pending) = self.pending_ns.filter(|pending| *pending != 0.0) {
            write!(f, "; a correction of {} is in progress", us(pending))?;
        }
        if let Some(ppm) = self.frequency_ppm.filter(|ppm| *ppm != 0.0) {
            write!(f, "; its rate is corrected by {ppm:.3} ppm")?;
        }
        if let Some(offset) = self.ptp_offset_ns {
            write!(f, "; ptp4l is {} from its master", us(offset))?;
        }
        let list = |all: &[String]| if all.is_empty() { "none".into() } else { all.join(", ") };
        write!(f, "; daemons: {}", list(&self.daemons))?;
        write!(f, "; clocks of network cards: {}", list(&self.ptp_devices))
    }
}

/// Asks the kernel and changes nothing.
fn kernel() -> Option<(libc::timex, libc::c_int)> {
    // SAFETY: `timex` is plain integers, for which all zeros is a value: `modes` 0 only reads.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: adjtimex(2) reads and writes one `timex`, and the pointer is to one.
    let state = unsafe { libc::adjtimex(&mut timex) };
    (state >= 0).then_some((timex, state))
}

/// What ptp4l says of its master, by its own program pmc(8), where that is there and may be run.
fn ask_ptp4l() -> Option<f64> {
    let mut command = Command::new("pmc");
    command.args(["-u", "-b", "0", "GET CURRENT_DATA_SET"]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let output = child::ends_with_us(&mut command).output().ok()?;
    offset_from_master(&String::from_utf8_lossy(&output.stdout))
}

/// `offsetFromMaster` in ns, of a clock that has a master: it is some steps from the first one.
pub(super) fn offset_from_master(said: &str) -> Option<f64> {
    let value = |name: &str| -> Option<f64> {
        let line = said.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.trim().parse().ok()
    };
    value("stepsRemoved").filter(|steps| *steps > 0.0)?;
    value("offsetFromMaster").filter(|offset| offset.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::tree::fake::Fake;
    use super::*;

    fn timex(status: libc::c_int) -> libc::timex {
        let (mut timex, _) = kernel().unwrap();
        (timex.status, timex.maxerror, timex.esterror) = (status, 250, 12);
        (timex.offset, timex.freq, timex.tick) = (-1500, -3 * 65_536, 10_000);
        timex
    }

    #[test]
    fn daemons_and_the_clocks_of_cards_are_found() {
        let fake = Fake::new(&[
            ("proc/7/comm", "ptp4l\n"),
            ("proc/8/comm", "phc2sys\n"),
            ("proc/9/comm", "ptp4l\n"),
            ("proc/10/comm", "chronyd-helper\n"),
            ("proc/self/comm", "chronyd\n"),
            ("sys/class/ptp/ptp0/clock_name", "mlx5_ptp\n"),
        ]);
        let found = Discipline::read_from(&fake.tree);
        assert_eq!(found.daemons, ["phc2sys (PTP)", "ptp4l (PTP)"]);
        assert_eq!(found.ptp_devices, ["ptp0 (mlx5_ptp)"]);
        assert_eq!(found.synchronized, None);
    }

    #[test]
    fn what_the_kernel_says_is_put_into_nanoseconds() {
        let found = Discipline::default().with(&timex(libc::STA_NANO | libc::STA_PLL), 0);
        assert_eq!(found.synchronized, Some(true));
        assert_eq!((found.max_error_ns, found.estimated_error_ns), (Some(250e3), Some(12e3)));
        assert_eq!((found.pending_ns, found.frequency_ppm), (Some(-1500.0), Some(-3.0)));
        assert_eq!(Discipline::default().with(&timex(0), 0).pending_ns, Some(-1.5e6));
        let shown = found.to_string();
        assert!(shown.contains("error at most 250 us, likely 12 us"), "{shown}");
        assert!(shown.contains("a correction of -1.5 us is in progress"), "{shown}");
    }

    #[test]
    fn a_clock_that_is_not_kept_right_is_refused_in_a_sentence() {
        let right = Discipline::default().with(&timex(0), 0);
        assert_eq!(right.stated_error_ns(), Ok(250e3));
        let followed = Discipline { ptp_offset_ns: Some(-400.0), ..right };
        assert_eq!(followed.stated_error_ns(), Ok(250_400.0));
        for found in [
            Discipline::default(),
            Discipline::default().with(&timex(libc::STA_UNSYNC), 0),
            Discipline::default().with(&timex(0), libc::TIME_ERROR),
        ] {
            let sentence = found.stated_error_ns().unwrap_err();
            assert!(sentence.contains("not synchronized here (no time daemon runs)"), "{sentence}");
        }
    }

    #[test]
    fn only_a_clock_with_a_master_has_an_offset_from_it() {
        let said = |steps: u32| {
            format!(
                "sending: GET CURRENT_DATA_SET\n\t021122.fffe.334455-0 seq 0 RESPONSE MANAGEMENT \
                 CURRENT_DATA_SET \n\t\tstepsRemoved     {steps}\n\t\toffsetFromMaster -37.0\n\t\t\
                 meanPathDelay    5120.0\n"
            )
        };
        assert_eq!(offset_from_master(&said(1)), Some(-37.0));
        assert_eq!(offset_from_master(&said(0)), None);
        assert_eq!(offset_from_master(""), None);
    }
}
