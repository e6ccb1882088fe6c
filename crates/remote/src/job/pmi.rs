//! The process manager interface of Hydra (PMI-1): lines of `key=value` as requests and answers.
//! Rank 0 publishes its address and key; the others read them.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Time limit of an answer: the other processes are being started meanwhile.
const LIMIT: Duration = Duration::from_secs(60);
/// Longest line of an answer (PMI-1 allows 1024 B for a value).
const LONGEST: u64 = 4096;
/// The key of the published value.
const KEY: &str = "wiregauge";

/// The value of `name` in a line as `cmd=get_result rc=0 value=x`.
fn word<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split_whitespace().find_map(|one| one.strip_prefix(name)?.strip_prefix('='))
}

/// Sends a line.
fn send(manager: &mut BufReader<impl Read + Write>, question: &str) -> Result<(), String> {
    let channel = manager.get_mut();
    let sent = channel.write_all(format!("{question}\n").as_bytes());
    sent.and_then(|()| channel.flush()).map_err(failed)
}

/// The next line of the launcher; empty where it has closed the channel.
fn line(manager: &mut BufReader<impl Read + Write>) -> Result<String, String> {
    let mut line = String::new();
    manager.take(LONGEST).read_line(&mut line).map_err(failed)?;
    Ok(line)
}

fn failed(error: std::io::Error) -> String {
    format!("the launcher's channel (PMI): {error}")
}

/// Sends a line and reads the answer to it, which has this name.
fn ask(
    manager: &mut BufReader<impl Read + Write>,
    question: &str,
    answer: &str,
) -> Result<String, String> {
    send(manager, question)?;
    let line = line(manager)?;
    let went = word(&line, "rc").is_none_or(|code| code == "0");
    let (is_answer, said) = (word(&line, "cmd") == Some(answer), line.trim().escape_default());
    ensure!(is_answer && went, "the launcher's channel (PMI): unexpected answer '{said}'");
    Ok(line)
}

/// Rank 0 publishes its value; every other rank reads it.
pub fn share_with(
    manager: &mut BufReader<impl Read + Write>,
    own: Option<&str>,
) -> Result<String, String> {
    let mut ask = |question: &str, answer| ask(manager, question, answer);
    ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")?;
    let named = ask("cmd=get_my_kvsname", "my_kvsname")?;
    let space = word(&named, "kvsname").unwrap_or_default();
    if let Some(own) = own {
        ask(&format!("cmd=put kvsname={space} key={KEY} value={own}"), "put_result")?;
    }
    ask("cmd=barrier_in", "barrier_out")?;
    let value = match own {
        Some(own) => own.to_string(),
        None => {
            let answer = ask(&format!("cmd=get kvsname={space} key={KEY}"), "get_result")?;
            word(&answer, "value").unwrap_or_default().to_string()
        }
    };
    Ok(value)
}

/// The channel after it was used: open, because MPI in an agent of this process uses it, too.
static CHANNEL: Mutex<Option<UnixStream>> = Mutex::new(None);
/// Time limit of the last answer.
const LAST: Duration = Duration::from_secs(2);
/// Most lines before it: MPI asks for one at a time, and an answer of Hydra has up to two.
const MOST_LEFT: u32 = 8;

/// Says that this process is done, where it has shared a value: a launcher takes one that does not
/// as one that failed. Where MPI has said so nobody listens any more.
pub fn finish() {
    let channel = CHANNEL.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(channel) = channel {
        let _ = channel.set_read_timeout(Some(LAST));
        let _ = finish_with(&mut BufReader::new(channel));
    }
}

/// Reads on to the answer, whatever lies before it: MPI in an agent that was killed has left what
/// it had asked for. Hydra ends the whole launch where its answer finds the channel closed.
fn finish_with(manager: &mut BufReader<impl Read + Write>) -> Result<(), String> {
    send(manager, "cmd=finalize")?;
    for _ in 0..MOST_LEFT {
        let line = line(manager)?;
        if line.is_empty() || word(&line, "cmd") == Some("finalize_ack") {
            break;
        }
    }
    Ok(())
}

/// Shares a value over the channel of PMI_FD.
pub fn share(own: Option<&str>) -> Result<String, String> {
    let number = std::env::var("PMI_FD").ok().and_then(|text| text.parse().ok());
    let number = number.ok_or("PMI_FD is not a number")?;
    let wrong =
        |error: std::io::Error| format!("the launcher's channel (PMI_FD {number}): {error}");
    let channel = UnixStream::from(wiregauge_host::inherited(number).map_err(wrong)?);
    channel.set_read_timeout(Some(LIMIT)).map_err(wrong)?;
    let shared = share_with(&mut BufReader::new(&channel), own);
    *CHANNEL.lock().unwrap_or_else(PoisonError::into_inner) = Some(channel);
    shared
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// A manager that has its answers ready.
    struct Scripted {
        answers: io::Cursor<Vec<u8>>,
        asked: Vec<u8>,
    }

    impl Read for Scripted {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.answers.read(bytes)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shared(answers: &str, own: Option<&str>) -> (Result<String, String>, String) {
        let answers = io::Cursor::new(answers.as_bytes().to_vec());
        let scripted = Scripted { answers, asked: Vec::new() };
        let mut manager = BufReader::new(scripted);
        let said = share_with(&mut manager, own);
        let _ = finish_with(&mut manager);
        (said, String::from_utf8(manager.into_inner().asked).unwrap())
    }

    const BEGIN: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n\
                         cmd=my_kvsname kvsname=kvs_1_0\n";
    const END: &str = "cmd=finalize_ack\n";

    #[test]
    fn rank_0_puts_and_the_others_get() {
        let answers = format!("{BEGIN}cmd=put_result rc=0 msg=success\ncmd=barrier_out\n{END}");
        let (said, asked) = shared(&answers, Some("a/b:1"));
        assert_eq!(said, Ok("a/b:1".into()));
        assert!(asked.contains("\ncmd=put kvsname=kvs_1_0 key=wiregauge value=a/b:1\n"), "{asked}");
        let answers =
            format!("{BEGIN}cmd=barrier_out\ncmd=get_result rc=0 msg=success value=x=1\n{END}");
        let (said, asked) = shared(&answers, None);
        assert_eq!(said, Ok("x=1".into()));
        assert!(
            asked.ends_with("cmd=get kvsname=kvs_1_0 key=wiregauge\ncmd=finalize\n"),
            "{asked}"
        );
    }

    #[test]
    fn what_an_agent_left_unread_is_read_before_the_channel_closes() {
        let left = "cmd=initack\ncmd=barrier_out\n";
        let manager = |answers: &str| {
            let answers = io::Cursor::new(answers.as_bytes().to_vec());
            BufReader::with_capacity(1, Scripted { answers, asked: Vec::new() })
        };
        let mut last = manager(&format!("{left}{END}no more\n"));
        assert_eq!(finish_with(&mut last), Ok(()));
        assert_eq!(line(&mut last), Ok("no more\n".into()));
        assert_eq!(finish_with(&mut manager(left)), Ok(()), "closed by the launcher");
        let mut endless = manager(&left.repeat(100));
        assert_eq!(finish_with(&mut endless), Ok(()));
        assert_eq!(line(&mut endless), Ok("cmd=initack\n".into()));
    }

    #[test]
    fn an_answer_that_is_none_is_a_sentence() {
        for answers in ["", "cmd=response_to_init rc=-1\n", "\u{1b}[31m\n", "cmd=barrier_out\n"] {
            let (said, _) = shared(answers, None);
            let sentence = said.unwrap_err();
            assert!(sentence.starts_with("the launcher's channel (PMI): "), "{sentence}");
            assert!(!sentence.contains(char::is_control), "{sentence}");
        }
        let (said, _) = shared(&"x".repeat(100_000), None);
        assert!(said.is_err(), "a line without an end");
    }
}
