//! Files that a user names: plain ones only, read no further than a bound.
//!
//! Opening a FIFO waits for a writer, and reading a device may wait or never end; both are refused.

use crate::descriptors::most_descriptors;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Opens a plain file for reading. What is not one is refused by its kind, without being opened:
/// opening a device can have effects.
pub fn open_file(path: &Path) -> io::Result<File> {
    open_plain(path, File::options().read(true))
}

/// As [`open_file`], also for writing: some file systems lock only such a file.
pub fn open_file_to_lock(path: &Path) -> io::Result<File> {
    open_plain(path, File::options().read(true).write(true))
}

fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    check_kind(&fs::metadata(path)?)?;
    // Another may have taken its place meanwhile: O_NONBLOCK keeps a FIFO from waiting.
    let file = options.custom_flags(libc::O_NONBLOCK).open(path).map_err(named_limit)?;
    check_kind(&file.metadata()?)?;
    Ok(file)
}

/// Returns the error with a sentence that names the limit, where it is one of file descriptors: it
/// says nothing of the file.
pub fn named_limit(error: io::Error) -> io::Error {
    let sentence = match error.raw_os_error() {
        Some(libc::EMFILE) => format!(
            "this process has as many files open as it may, {}: raise the limit (ulimit -n)",
            most_descriptors()
        ),
        Some(libc::ENFILE) => "this host has as many files open as it may: close some, or raise \
                               the limit (sysctl fs.file-max)"
            .to_owned(),
        _ => return error,
    };
    io::Error::new(error.kind(), sentence)
}

fn check_kind(found: &fs::Metadata) -> io::Result<()> {
    let kind = found.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if kind.is_fifo() => "a FIFO",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    let sentence = format!("it is {what} and not a plain file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, sentence))
}

/// Opens a file that a user named for output, with these options; a device is as good. A FIFO that
/// nobody reads is refused at once: opening it would wait for a reader.
pub fn open_output(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let opened = options.write(true).create(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => {
            io::Error::new(error.kind(), "it is a FIFO that nobody reads, or a device without one")
        }
        _ => error,
    })?;
    // A reader that is slow is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// The bytes of a plain file of at most `most` bytes.
pub fn read_file(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    open_file(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    let sentence = || io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {most} B"));
    ensure!(bytes.len() as u64 <= most, sentence());
    Ok(bytes)
}

/// The text of a plain file of at most `most` bytes.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not text");
    String::from_utf8(read_file(path, most)?).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn what_is_no_plain_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let refused = |path: &Path| read_text(path, 10).unwrap_err().to_string();
        assert_eq!(refused(&fifo), "it is a FIFO and not a plain file");
        assert_eq!(refused(Path::new("/dev/zero")), "it is a device and not a plain file");
        assert_eq!(refused(folder.path()), "it is a directory and not a plain file");
    }

    #[test]
    fn a_limit_of_descriptors_is_named_and_other_errors_stay() {
        for (number, part) in [
            (libc::EMFILE, "raise the limit (ulimit -n)"),
            (libc::ENFILE, "fs.file-max"),
            (libc::ENOENT, "No such file"),
        ] {
            let said = named_limit(io::Error::from_raw_os_error(number)).to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn an_output_that_nobody_reads_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let refused = open_output(&fifo, &mut File::options()).unwrap_err().to_string();
        assert!(refused.starts_with("it is a FIFO that nobody reads"), "{refused}");
        let file = folder.path().join("file");
        for text in ["one", "two"] {
            let mut opened = open_output(&file, File::options().append(true)).unwrap();
            opened.write_all(text.as_bytes()).unwrap();
            assert!(!fcntl_getfl(&opened).unwrap().contains(OFlags::NONBLOCK));
        }
        assert_eq!(fs::read(&file).unwrap(), b"onetwo");
        open_output(Path::new("/dev/null"), &mut File::options()).unwrap();
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "0123456789").unwrap();
        assert_eq!(read_text(&path, 10).unwrap(), "0123456789");
        assert_eq!(read_text(&path, 9).unwrap_err().to_string(), "more than 9 B");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, 9).unwrap_err().to_string(), "not text");
    }
}
