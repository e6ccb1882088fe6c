//! What the guest is given to do, as files of shell words: its settings, and the command with the
//! directory and the environment of whoever asked.

use super::tools;
use fs_err as fs;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Variables that mean something to this host and nothing in the guest, or that a shell sets.
const HOST_ONLY: &str = "DBUS_SESSION_BUS_ADDRESS DISPLAY HOSTNAME OLDPWD PATH PWD SHLVL \
    SSH_AUTH_SOCK WAYLAND_DISPLAY XAUTHORITY XDG_RUNTIME_DIR _";

/// Writes `settings` and `command` into a folder.
pub fn write(folder: &Path, settings: &[(&str, OsString)], command: &[OsString]) -> io::Result<()> {
    let directory = std::env::current_dir()?;
    let variables = std::env::vars_os().filter(|(name, _)| is_for_the_guest(name));
    let mut environment: Vec<(OsString, OsString)> = variables.collect();
    environment.push(("PATH".into(), tools::search_path()));
    let settings = settings.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    fs::write(folder.join("settings"), exports(settings))?;
    fs::write(folder.join("command"), script(&directory, environment.into_iter(), command))
}

/// Variables of a machine: its own addresses and those of the other.
pub fn settings(number: usize, machines: usize) -> Vec<(&'static str, OsString)> {
    let mut settings: Vec<(&str, OsString)> = vec![
        ("WIREGAUGE_TESTBED", "rdma".into()),
        ("WIREGAUGE_TESTBED_DEVICE", "rxe0".into()),
        ("WIREGAUGE_TESTBED_NUMBER", number.to_string().into()),
        ("WIREGAUGE_TESTBED_ADDRESS", format!("10.77.0.{number}").into()),
        ("WIREGAUGE_TESTBED_ADDRESS6", format!("fd77::{number}").into()),
    ];
    if machines == 2 {
        let other = 3 - number;
        settings.push(("WIREGAUGE_TESTBED_PEER", format!("10.77.0.{other}").into()));
        settings.push(("WIREGAUGE_TESTBED_PEER6", format!("fd77::{other}").into()));
    }
    settings
}

/// Whether a variable is passed on: a name that a shell takes, and of use there.
fn is_for_the_guest(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    let plain = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let begins = bytes.first().is_some_and(|byte| !byte.is_ascii_digit());
    plain && begins && !HOST_ONLY.split(' ').any(|other| name == other)
}

fn exports(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<u8> {
    let line = |(name, value): (OsString, OsString)| {
        [b"export ", name.as_bytes(), b"=", &quoted(&value), b"\n"].concat()
    };
    variables.flat_map(line).collect()
}

/// Changes to the directory and becomes the command.
fn script(
    directory: &Path,
    environment: impl Iterator<Item = (OsString, OsString)>,
    command: &[OsString],
) -> Vec<u8> {
    let words: Vec<u8> =
        command.iter().flat_map(|word| [b" ", &quoted(word)[..]].concat()).collect();
    let directory = quoted(directory.as_os_str());
    [&exports(environment)[..], b"cd ", &directory, b" || exit 126\nexec", &words, b"\n"].concat()
}

/// A word of a shell: between single quotes nothing has a meaning but their end.
fn quoted(word: &OsStr) -> Vec<u8> {
    let parts: Vec<&[u8]> = word.as_bytes().split(|byte| *byte == b'\'').collect();
    [b"'", &parts.join(&br"'\''"[..])[..], b"'"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_arrives_word_for_word() {
        let words =
            ["printf", "%s|", "it's", "a b", "", "$HOME", "`id`", "\"\\", "new\nline", "-x"];
        let variables = [("MINE".into(), "a 'b' $c\n".into())];
        let mut command = vec![OsString::from("sh"), "-c".into()];
        command.push("printf '%s|' \"$MINE\" \"$PWD\" \"$@\"".into());
        command.extend(words.map(OsString::from));
        let text = script(Path::new("/usr/lib"), variables.into_iter(), &command);
        let mut shell = std::process::Command::new("sh");
        let output = shell.arg("-c").arg(OsStr::from_bytes(&text)).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said, "a 'b' $c\n|/usr/lib|%s||it's|a b||$HOME|`id`|\"\\|new\nline|-x|");
    }

    #[test]
    fn variables_of_the_host_and_strange_names_stay_here() {
        for name in ["HOME", "LD_LIBRARY_PATH", "_mine"] {
            assert!(is_for_the_guest(OsStr::new(name)), "{name}");
        }
        for name in ["PATH", "DISPLAY", "BASH_FUNC_x%%", "a b", "1A", "", "_"] {
            assert!(!is_for_the_guest(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_machine_knows_itself_and_the_other() {
        let value = |settings: &[(&str, OsString)], name: &str| {
            let found = settings.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        let [first, second] = [1, 2].map(|number| settings(number, 2));
        let address = "WIREGAUGE_TESTBED_ADDRESS";
        assert_eq!(value(&first, "WIREGAUGE_TESTBED_PEER"), value(&second, address));
        assert_eq!(value(&second, "WIREGAUGE_TESTBED_PEER6"), Some("fd77::1".into()));
        assert_eq!(value(&settings(1, 1), "WIREGAUGE_TESTBED_PEER"), None);
    }
}
