//! One machine: its emulator, the folder that they share, and the ports between them.

use super::debugger;
use super::kit::Kit;
use super::tools::{self, last_words, start};
use super::{MachineRequest, job};
use fs_err as fs;
use std::cell::Cell;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use wiregauge_host::child::OwnedChild;
use wiregauge_host::private_folder::PrivateFolder;

/// The ports of `testbed/guest`.
const PORTS: [&str; 3] = ["control", "out", "err"];

/// Processors: a client and a server that both spin need one each.
const PROCESSORS: u32 = 2;

/// Socket of the emulator's port for debuggers, in the machine's folder.
const DEBUGGER: &str = "debugger";

/// Longest path of a socket.
const MAX_SOCKET_PATH: usize = 107;

/// Reported by the kernel's watchdog where a processor has run one thread alone for too long.
const LOCKUP: &[u8] = b"BUG: soft lockup";

/// A machine of those that were asked for.
#[derive(Debug)]
pub struct MachineSpec<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// What was asked for.
    pub wanted: &'a MachineRequest,
    /// The host's folder that is its `/out`.
    pub out: &'a Path,
    /// Its end of the wire to the other machine.
    pub wire: Option<&'a UnixStream>,
}

impl MachineSpec<'_> {
    /// What it runs.
    fn command(&self) -> Vec<OsString> {
        match &self.wanted.peer {
            _ if self.number == 1 => self.wanted.command.clone(),
            Some(line) => vec!["/bin/sh".into(), "-c".into(), line.into()],
            None => vec!["sleep".into(), "infinity".into()],
        }
    }
}

/// The host's ends of a machine's [`PORTS`]: lines of the guest's script, what the command prints,
/// and its messages to stderr.
pub type Ports = [UnixStream; 3];

/// A running machine. It ends when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct Machine {
    /// Its number, from 1.
    pub number: usize,
    control: UnixStream,
    _child: OwnedChild,
    folder: PrivateFolder,
    /// Bytes on its console before its command began.
    booted: Cell<usize>,
    /// Bytes of its console that were searched for lockups.
    searched: Cell<usize>,
}

impl Machine {
    /// Starts it. Call this from the main thread: the machine ends with the thread.
    pub fn start(kit: &Kit, spec: &MachineSpec) -> io::Result<(Machine, Ports)> {
        let folder = PrivateFolder::new("testbed")?;
        let share = folder.path().join("job");
        fs::create_dir(&share)?;
        let mut settings = vec![("modules", kit.modules.clone().into_os_string())];
        settings.extend(job::settings(spec.number, spec.wanted.machines));
        job::write(&share, &settings, &spec.command())?;
        let [(control, one), (out, two), (err, three)] =
            [UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?];
        let ports = [one, two, three];
        // The emulator takes its ends by number. Nothing else is started while they are open.
        for end in ports.iter().map(AsFd::as_fd).chain(spec.wire.map(AsFd::as_fd)) {
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::empty())?;
        }
        let said = fs::File::create(folder.path().join("said"))?.into_file();
        let mut command = tools::command("qemu-system-x86_64");
        command.args(words(kit, spec, folder.path(), &ports));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let _child = OwnedChild(start(&mut command)?);
        let (number, own) = (spec.number, control.try_clone()?);
        let (booted, searched) = (Cell::new(0), Cell::new(0));
        let machine = Machine { number, control: own, _child, folder, booted, searched };
        Ok((machine, [control, out, err]))
    }

    /// Lets its command begin. One that is gone is noticed by its port.
    pub fn begin(&self) {
        self.booted.set(self.read("console").len());
        let _ = (&self.control).write_all(b"go\n");
    }

    /// Frees a processor on which the kernel has reported a lockup since the last call; returns
    /// whether there was one.
    pub fn free_locked_processor(&self) -> io::Result<bool> {
        let length = self.folder.path().join("console").metadata().map_or(0, |file| file.len());
        let searched = self.searched.get();
        if length as usize == searched {
            return Ok(false);
        }
        let console = self.read("console");
        // The words may have been written in two parts.
        let new = &console[(searched + 1).saturating_sub(LOCKUP.len()).min(console.len())..];
        self.searched.set(console.len());
        let is_locked = new.windows(LOCKUP.len()).any(|words| words == LOCKUP);
        let socket = self.folder.path().join(DEBUGGER);
        if is_locked && socket.exists() {
            debugger::drop_translations(&socket, PROCESSORS)?;
        }
        Ok(is_locked)
    }

    /// An error with the end of the output of the emulator and of the console.
    pub fn fault(&self, what: &str) -> io::Error {
        let mut words = ["said", "console"].map(|name| last_words(&self.read(name))).to_vec();
        words.retain(|words| !words.is_empty());
        let output = if words.is_empty() { "" } else { "; its output: " };
        let words = words.join("; ");
        io::Error::other(format!("the testbed's machine {} {what}{output}{words}", self.number))
    }

    /// Messages of its kernel since its command began: a CPU that hangs, a fault.
    pub fn kernel_words(&self) -> Option<String> {
        let console = self.read("console");
        let words = last_words(console.get(self.booted.get()..)?);
        (!words.is_empty()).then_some(words)
    }

    /// What is in a file of its folder.
    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.folder.path().join(name)).unwrap_or_default()
    }
}

/// Command line of the kernel. It would wait a moment for ticks of its timer, and panic if a busy
/// host emulates none meanwhile ("IO-APIC + timer doesn't work!").
const KERNEL_LINE: &str = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check";

/// The emulator's arguments; `ports` are its ends of [`PORTS`].
fn words(kit: &Kit, spec: &MachineSpec, folder: &Path, ports: &Ports) -> Vec<OsString> {
    // Hardware virtualisation is not looked for: it is there on machines on which it hangs.
    let mut plain = format!(
        "-nodefaults -no-user-config -no-reboot -display none -accel tcg,thread=multi -cpu max \
         -smp {PROCESSORS} -m {} -device virtio-serial-pci",
        spec.wanted.memory.0 >> 20
    );
    for (port, end) in PORTS.iter().zip(ports) {
        plain += &format!(
            " -chardev socket,id={port},fd={} -device virtserialport,chardev={port},\
             name=wiregauge.{port}",
            end.as_raw_fd()
        );
    }
    if let Some(wire) = spec.wire {
        plain += &format!(
            " -netdev socket,id=wire,fd={} -device virtio-net-pci,netdev=wire,\
             mac=52:54:00:00:77:{:02x}",
            wire.as_raw_fd(),
            spec.number
        );
    }
    let mut words: Vec<OsString> = plain.split(' ').map(OsString::from).collect();
    words.extend(["-append", KERNEL_LINE].map(OsString::from));
    words.extend(["-kernel".into(), kit.kernel.clone().into_os_string()]);
    words.extend(["-initrd".into(), kit.initrd.clone().into_os_string()]);
    words.extend(["-serial".into(), option("file:", &folder.join("console"), "")]);
    let socket = folder.join(DEBUGGER);
    if socket.as_os_str().len() <= MAX_SOCKET_PATH {
        words.extend(["-gdb".into(), option("unix:", &socket, ",server=on,wait=off")]);
    }
    let shares: [(&str, &Path, &str); 3] = [
        ("host", Path::new("/"), ",readonly=on"),
        ("job", &folder.join("job"), ",readonly=on"),
        ("out", spec.out, ""),
    ];
    for (tag, path, more) in shares {
        let after = format!(",mount_tag={tag},security_model=none,multidevs=remap{more}");
        words.extend(["-virtfs".into(), option("local,path=", path, &after)]);
    }
    words
}

/// A path in an option of the emulator, where a comma ends a value and two are one.
fn option(before: &str, path: &Path, after: &str) -> OsString {
    let parts: Vec<&[u8]> = path.as_os_str().as_bytes().split(|byte| *byte == b',').collect();
    OsString::from_vec([before.as_bytes(), &parts.join(&b",,"[..]), after.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wiregauge_base::units::{Bytes, Span};

    fn typed() -> Vec<String> {
        let kit = Kit {
            kernel: "/c/vmlinuz".into(),
            initrd: "/c/initrd".into(),
            modules: "/c/lib/modules".into(),
        };
        let wanted = MachineRequest {
            memory: Bytes(3 << 30),
            timeout: Span(1),
            out: None,
            kernel: None,
            machines: 1,
            peer: None,
            command: Vec::new(),
        };
        let spec = MachineSpec { number: 1, wanted: &wanted, out: Path::new("/a,b"), wire: None };
        let ports = [(); 3].map(|()| UnixStream::pair().unwrap().1);
        let words = words(&kit, &spec, Path::new("/t"), &ports);
        words.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    fn follows(words: &[String], option: &str, value: &str) -> bool {
        words.windows(2).any(|pair| pair[0] == option && pair[1] == value)
    }

    #[test]
    fn the_machine_is_emulated_and_sees_the_host_read_only() {
        let words = typed();
        assert!(follows(&words, "-accel", "tcg,thread=multi"), "{words:?}");
        assert!(follows(&words, "-m", "3072"), "{words:?}");
        assert!(words.iter().all(|word| !word.contains("kvm")), "{words:?}");
        assert!(follows(&words, "-append", KERNEL_LINE), "{words:?}");
        let shares: Vec<&String> = words.iter().filter(|word| word.starts_with("local,")).collect();
        assert_eq!(shares.len(), 3);
        for share in shares {
            let writable = !share.contains("readonly=on");
            assert_eq!(writable, share.contains("mount_tag=out"), "{share}");
        }
    }

    #[test]
    fn a_lockup_can_be_ended() {
        let words = typed();
        assert!(follows(&words, "-gdb", "unix:/t/debugger,server=on,wait=off"), "{words:?}");
    }

    #[test]
    fn a_comma_in_a_path_stays_one() {
        let words = typed();
        let out = words.iter().find(|word| word.contains("mount_tag=out")).unwrap();
        assert!(out.starts_with("local,path=/a,,b,mount_tag=out,"), "{out}");
    }
}
