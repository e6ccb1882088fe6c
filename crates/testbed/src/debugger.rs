//! Frees a processor that the emulator holds in a breakpoint which its kernel has removed.
//!
//! Linux patches its own code while it runs: it writes a breakpoint over an instruction, then the
//! rest of the new instruction, then its first byte. QEMU before 8.1 may translate the breakpoint
//! while another processor replaces it, and then keeps that translation for good (mended by
//! "accel/tcg: Always lock pages before translation"). The kernel finds no breakpoint in its
//! memory, returns to the address, and hits it again: the processor never leaves it, and its
//! watchdog reports a soft lockup. Writing the bytes that are there once more makes QEMU drop the
//! translation. The writes go through QEMU's port for debuggers, while all processors are stopped,
//! so that they change nothing else.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Stops of the processors: one in three finds a looping processor at the address itself, the
/// others in the kernel's handler.
const STOPS: u32 = 30;

/// Interval in which the processors run between two stops.
const PAUSE: Duration = Duration::from_millis(20);

/// Timeout of an answer. The emulator stops its processors first, which took more than 5 s
/// on a busy host; a machine whose last answer is not awaited would stand still for good.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Position of the instruction pointer in the answer to `g`: after 16 registers of 8 bytes.
const INSTRUCTION_POINTER: std::ops::Range<usize> = 256..272;

/// Lowest address of the kernel; what programs run is not patched by it.
const KERNEL: u64 = 1 << 63;

/// Makes the emulator translate anew the code that its processors run.
pub fn drop_translations(socket: &Path, processors: u32) -> io::Result<()> {
    for _ in 0..STOPS {
        let mut debugger = Debugger::connect(socket)?;
        for processor in 1..=processors {
            debugger.rewrite_code(processor)?;
        }
        drop(debugger);
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// A connection to the emulator's port for debuggers. The machine stands still while it is open.
struct Debugger(UnixStream);

impl Debugger {
    fn connect(socket: &Path) -> io::Result<Debugger> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        Ok(Debugger(stream))
    }

    /// Writes the bytes at a processor's instruction pointer over themselves.
    fn rewrite_code(&mut self, processor: u32) -> io::Result<()> {
        self.request(&format!("Hg{processor:x}"))?;
        let registers = self.request("g")?;
        let Some(address) = registers.get(INSTRUCTION_POINTER).and_then(little_endian) else {
            return Err(io::Error::other(format!("no registers in {registers:?}")));
        };
        // The longest instruction may reach into a page that is not there; one byte cannot.
        if address >= KERNEL {
            let code = self.request(&format!("m{address:x},1"))?;
            self.request(&format!("M{address:x},1:{code}"))?;
        }
        Ok(())
    }

    /// Sends a request of the remote serial protocol; returns its answer.
    fn request(&mut self, request: &str) -> io::Result<String> {
        self.0.write_all(&framed(request))?;
        let mut answer = Vec::new();
        let mut piece = [0; 4096];
        loop {
            match self.0.read(&mut piece)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                size => answer.extend_from_slice(&piece[..size]),
            }
            while let Some((content, size)) = unframed(&answer) {
                answer.drain(..size);
                self.0.write_all(b"+")?;
                // The emulator also reports that it has stopped the machine, once a connection.
                if !content.starts_with('T') {
                    return Ok(content);
                }
            }
        }
    }
}

impl Drop for Debugger {
    /// Lets the machine run on, whatever has failed.
    fn drop(&mut self) {
        let _ = self.request("D");
    }
}

/// A packet: its content between `$` and `#`, and the sum of its bytes.
fn framed(content: &str) -> Vec<u8> {
    let sum = content.bytes().fold(0_u8, u8::wrapping_add);
    format!("${content}#{sum:02x}").into_bytes()
}

/// The content of the first whole packet, and how many bytes it and all before it take.
fn unframed(bytes: &[u8]) -> Option<(String, usize)> {
    let begin = bytes.iter().position(|byte| *byte == b'$')? + 1;
    let end = begin + bytes[begin..].iter().position(|byte| *byte == b'#')?;
    let content = String::from_utf8_lossy(&bytes[begin..end]).into_owned();
    (bytes.len() >= end + 3).then_some((content, end + 3))
}

/// A number of 8 bytes in hexadecimal digits, the lowest byte first.
fn little_endian(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok().map(u64::swap_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn packets_are_framed_by_the_remote_serial_protocol() {
        assert_eq!(framed("Hg1"), b"$Hg1#e0");
        assert_eq!(unframed(b"+$OK#9a$"), Some(("OK".to_owned(), 7)));
        for part in ["", "+", "+$OK", "+$OK#", "+$OK#9"] {
            assert_eq!(unframed(part.as_bytes()), None, "{part}");
        }
        assert_eq!(little_endian("ff34c6a5ffffffff"), Some(0xffff_ffff_a5c6_34ff));
    }

    /// Answers as QEMU does, with a processor in the kernel and one in a program; returns what was
    /// written and whether each connection ended with a detach.
    fn answered(listener: &UnixListener) -> (Vec<String>, bool) {
        let (mut stream, _) = listener.accept().unwrap();
        let mut processor = String::new();
        let mut writes = Vec::new();
        let mut detached = false;
        let mut pending = Vec::new();
        let mut piece = [0; 256];
        stream.write_all(&framed("T02thread:01;")).unwrap();
        loop {
            let size = stream.read(&mut piece).unwrap_or(0);
            if size == 0 {
                return (writes, detached);
            }
            pending.extend_from_slice(&piece[..size]);
            let Some((request, _)) = unframed(&pending) else { continue };
            pending.clear();
            let answer = match request.as_bytes()[0] {
                b'H' => {
                    processor = request[2..].to_owned();
                    "OK".to_owned()
                }
                b'g' if processor == "1" => "00".repeat(128) + "ff34c6a5ffffffff" + "0202",
                b'g' => "00".repeat(128) + "0010400000000000" + "0202",
                b'm' => "cc".to_owned(),
                b'M' => {
                    writes.push(request);
                    "OK".to_owned()
                }
                _ => {
                    detached = true;
                    "OK".to_owned()
                }
            };
            stream.write_all(b"+").unwrap();
            stream.write_all(&framed(&answer)).unwrap();
        }
    }

    #[test]
    fn the_code_of_the_kernel_is_written_over_itself_and_the_machine_runs_on() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("debugger");
        let listener = UnixListener::bind(&socket).unwrap();
        let emulator =
            std::thread::spawn(move || (0..STOPS).map(|_| answered(&listener)).collect::<Vec<_>>());
        drop_translations(&socket, 2).unwrap();
        for (writes, detached) in emulator.join().unwrap() {
            assert_eq!(writes, ["Mffffffffa5c634ff,1:cc"]);
            assert!(detached);
        }
    }
}
