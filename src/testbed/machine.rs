//! One machine: its emulator, the folder that they share, and the ports between them.

use super::error::{TestbedError, file};
use super::job;
use super::kit::Kit;
use super::tools::{Tools, last_words};
use crate::host::child;
use crate::units::Bytes;
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The ports of `testbed/guest`.
const PORTS: [&str; 3] = ["control", "out", "err"];

/// How long the emulator may take to connect its ports: it does so before the guest runs.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// Processors: a client and a server that both spin need one each.
const PROCESSORS: u32 = 2;

/// Names to try for a private folder before giving up.
const NAMES: u32 = 1000;

/// What differs from machine to machine.
#[derive(Debug)]
pub struct Shape<'a> {
    /// Its number, from 1.
    pub number: usize,
    /// Its memory.
    pub memory: Bytes,
    /// The host's folder that is its `/out`.
    pub out: &'a Path,
    /// What the guest's script is told beside the addresses.
    pub settings: Vec<(&'static str, OsString)>,
    /// What it runs.
    pub command: &'a [OsString],
    /// Its end of the wire to the other machine.
    pub wire: Option<&'a OwnedFd>,
}

/// Makes a folder for this process alone among the temporary files.
pub fn private_folder(kind: &str) -> Result<PathBuf, TestbedError> {
    let base = std::env::temp_dir();
    for number in 0..NAMES {
        let path = base.join(format!("wiregauge-{kind}-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(file("making", &path)(error)),
        }
    }
    Err(TestbedError::Unable(format!("no free name for a folder in {}", base.display())))
}

/// A folder that goes with its owner.
#[derive(Debug)]
pub struct Private(pub PathBuf);

impl Drop for Private {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The host's ends of a machine's ports.
#[derive(Debug)]
pub struct Ports {
    /// Lines of the guest's script.
    pub control: UnixStream,
    /// What the command prints.
    pub out: UnixStream,
    /// What it says beside.
    pub err: UnixStream,
}

/// A running machine. It ends when this is dropped, and when this process ends.
#[derive(Debug)]
pub struct Machine {
    /// Its number, from 1.
    pub number: usize,
    child: Child,
    folder: Private,
}

impl Machine {
    /// Starts it. Call this from the main thread: the machine ends with the thread.
    pub fn start(
        tools: &Tools,
        kit: &Kit,
        shape: &Shape,
    ) -> Result<(Machine, Ports), TestbedError> {
        let folder = Private(private_folder("testbed")?);
        let share = folder.0.join("job");
        fs::create_dir(&share).map_err(file("making", &share))?;
        let mut settings = vec![("modules", kit.modules.clone().into_os_string())];
        settings.extend(shape.settings.iter().cloned());
        job::write(&share, &settings, shape.command)?;
        let listeners = PORTS.map(|port| folder.0.join(port)).map(|path| {
            let listening = UnixListener::bind(&path).and_then(|listener| {
                listener.set_nonblocking(true)?;
                Ok(listener)
            });
            listening.map_err(file("listening at", &path))
        });
        if let Some(wire) = shape.wire {
            // The emulator takes its end by number. Nothing else is started while it is open.
            rustix::io::fcntl_setfd(wire, rustix::io::FdFlags::empty())
                .map_err(std::io::Error::from)
                .map_err(file("handing over the wire in", &folder.0))?;
        }
        let said = folder.0.join("said");
        let said = File::create(&said).map_err(file("making", &said))?;
        let mut command = Command::new(&tools.qemu);
        command.args(words(kit, shape, &folder.0)).stdin(Stdio::null()).stdout(Stdio::null());
        let child = child::ends_with_us(command.stderr(said)).spawn();
        let child = child.map_err(file("starting", &tools.qemu))?;
        let mut machine = Machine { number: shape.number, child, folder };
        let deadline = Instant::now() + CONNECT_LIMIT;
        let [control, out, err] = listeners;
        let control = machine.accept(&control?, deadline)?;
        let out = machine.accept(&out?, deadline)?;
        let err = machine.accept(&err?, deadline)?;
        Ok((machine, Ports { control, out, err }))
    }

    fn accept(
        &mut self,
        listener: &UnixListener,
        deadline: Instant,
    ) -> Result<UnixStream, TestbedError> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(file("waiting at", &self.folder.0))?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(file("waiting at", &self.folder.0)(error)),
            }
            let over = matches!(self.child.try_wait(), Ok(Some(_)));
            if over || Instant::now() > deadline {
                return Err(self.fault("did not start"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// An error with the last words of the emulator and of the console.
    pub fn fault(&self, what: &str) -> TestbedError {
        let read = |name| fs::read(self.folder.0.join(name)).unwrap_or_default();
        let words = [last_words(&read("said")), last_words(&read("console"))];
        let words: Vec<String> = words.into_iter().filter(|said| !said.is_empty()).collect();
        let what = match words.is_empty() {
            true => what.to_owned(),
            false => format!("{what}; it said: {}", words.join("; ")),
        };
        TestbedError::Machine { number: self.number, what }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The child is ours and was not waited for: its number cannot be another's.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The emulator's arguments.
fn words(kit: &Kit, shape: &Shape, folder: &Path) -> Vec<OsString> {
    let memory = (shape.memory.0 >> 20).to_string();
    let processors = PROCESSORS.to_string();
    // Hardware virtualisation is not looked for: it is there on machines on which it hangs.
    let mut words: Vec<OsString> = [
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max",
        "-smp",
        &processors,
        "-m",
        &memory,
        "-append",
        "console=ttyS0 quiet panic=-1 mitigations=off",
        "-device",
        "virtio-serial-pci",
    ]
    .map(OsString::from)
    .into();
    words.extend(["-kernel".into(), kit.kernel.clone().into_os_string()]);
    words.extend(["-initrd".into(), kit.initrd.clone().into_os_string()]);
    words.extend(["-serial".into(), option("file:", &folder.join("console"), "")]);
    for port in PORTS {
        let before = format!("socket,id={port},path=");
        words.extend(["-chardev".into(), option(&before, &folder.join(port), "")]);
        let device = format!("virtserialport,chardev={port},name=wiregauge.{port}");
        words.extend(["-device".into(), device.into()]);
    }
    if let Some(wire) = shape.wire {
        words.extend(["-netdev".into(), format!("socket,id=wire,fd={}", wire.as_raw_fd()).into()]);
        let device = format!("virtio-net-pci,netdev=wire,mac=52:54:00:00:77:{:02x}", shape.number);
        words.extend(["-device".into(), device.into()]);
    }
    let shares: [(&str, &Path, &str); 3] = [
        ("host", Path::new("/"), ",readonly=on"),
        ("job", &folder.join("job"), ",readonly=on"),
        ("out", shape.out, ""),
    ];
    for (tag, path, more) in shares {
        let after = format!(",mount_tag={tag},security_model=none,multidevs=remap{more}");
        words.extend(["-virtfs".into(), option("local,path=", path, &after)]);
    }
    words
}

/// A path in an option of the emulator, where a comma ends a value and two are one.
fn option(before: &str, path: &Path, after: &str) -> OsString {
    let mut text = before.as_bytes().to_vec();
    for byte in path.as_os_str().as_bytes() {
        text.push(*byte);
        if *byte == b',' {
            text.push(b',');
        }
    }
    text.extend_from_slice(after.as_bytes());
    OsStr::from_bytes(&text).to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn typed() -> Vec<String> {
        let kit = Kit {
            kernel: "/c/vmlinuz".into(),
            initrd: "/c/initrd".into(),
            modules: "/c/lib/modules".into(),
        };
        let shape = Shape {
            number: 1,
            memory: Bytes(3 << 30),
            out: Path::new("/a,b"),
            settings: Vec::new(),
            command: &[],
            wire: None,
        };
        let words = words(&kit, &shape, Path::new("/t"));
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
        let shares: Vec<&String> = words.iter().filter(|word| word.starts_with("local,")).collect();
        assert_eq!(shares.len(), 3);
        for share in shares {
            let writable = !share.contains("readonly=on");
            assert_eq!(writable, share.contains("mount_tag=out"), "{share}");
        }
    }

    #[test]
    fn a_comma_in_a_path_stays_one() {
        let words = typed();
        let out = words.iter().find(|word| word.contains("mount_tag=out")).unwrap();
        assert!(out.starts_with("local,path=/a,,b,mount_tag=out,"), "{out}");
    }

    #[test]
    fn a_private_folder_goes_with_its_owner() {
        let private = Private(private_folder("test").unwrap());
        let path = private.0.clone();
        fs::write(path.join("file"), "").unwrap();
        drop(private);
        assert!(!path.exists());
    }
}
