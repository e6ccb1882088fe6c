//! The hook that checks commit messages, run on messages with known answers.

use super::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A git repository in the temporary directory, removed when dropped.
struct Repository(PathBuf);

impl Repository {
    fn new(name: &str) -> Repository {
        let folder = std::env::temp_dir().join(format!("tidy-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let repository = Repository(folder);
        repository.git(&["init", "--quiet"]);
        repository
    }

    fn git(&self, arguments: &[&str]) {
        let identity = ["-c", "user.name=Name", "-c", "user.email=name@example.org"];
        let output = self.command("git").args(identity).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Prepares a program that is not led elsewhere by a git that runs the tests.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.0).env_remove("GIT_DIR").env_remove("GIT_INDEX_FILE");
        command
    }

    /// Runs the hook; returns what it complains about, `None` if it accepts.
    fn complaint(&self, arguments: &[&str]) -> Option<String> {
        let hook = root().join(".githooks/commit-msg");
        let output = self.command(hook).args(arguments).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.success(), text.is_empty(), "{text}");
        (!text.is_empty()).then_some(text)
    }

    fn complaint_about(&self, message: &str) -> Option<String> {
        fs::write(self.0.join("message"), message).unwrap();
        self.complaint(&["message"])
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[track_caller]
fn assert_complaint(complaint: Option<String>, part: &str) {
    assert!(complaint.as_ref().is_some_and(|text| text.contains(part)), "{complaint:?}");
}

#[test]
fn messages_without_a_claim_need_a_short_first_line_alone() {
    let repository = Repository::new("short");
    let allowed =
        ["Poll the endpoint while the generator waits", &"a".repeat(72), "Add RC2 of v1.5"];
    for message in allowed {
        assert_eq!(repository.complaint_about(message), None);
    }
    assert_complaint(repository.complaint_about(&"a".repeat(73)), "73 characters");
    assert_complaint(repository.complaint_about("Add it\nand more"), "must be empty");
    let merge = format!("Merge branch '{}'", "a".repeat(80));
    assert_eq!(repository.complaint_about(&merge), None);
}

#[test]
fn a_claim_in_the_first_line_needs_a_body() {
    let repository = Repository::new("claim");
    let claims = [
        "Halve the time to link",
        "Send 20 % more messages",
        "Answer in 1.5us",
        "Make the program 3 MB smaller",
        "Read samples 4 times as fast",
    ];
    for subject in claims {
        assert_complaint(repository.complaint_about(subject), "claims a figure");
        let trailer = format!("{subject}\n\nSigned-off-by: Name <name@example.org>\n# comment\n");
        assert_complaint(repository.complaint_about(&trailer), "claims a figure");
        let body = format!("{subject}\n\nMeasured by bench/peers: 4.1 us before, 3.2 us now.\n");
        assert_eq!(repository.complaint_about(&body), None);
    }
}

#[test]
fn a_figure_on_a_page_needs_a_body_in_the_hook_and_in_a_range() {
    let repository = Repository::new("page");
    fs::write(repository.0.join("README.md"), "A run.\n").unwrap();
    repository.git(&["add", "."]);
    repository.git(&["commit", "--quiet", "-m", "Add a page"]);
    fs::write(repository.0.join("README.md"), "A run takes 3 ms.\n").unwrap();
    repository.git(&["add", "."]);
    assert_complaint(repository.complaint_about("Mention the duration"), "takes 3 ms");
    assert_eq!(repository.complaint_about("Mention the duration\n\nOf 10 runs on one host."), None);
    repository.git(&["commit", "--quiet", "-m", "Mention the duration"]);
    assert_complaint(repository.complaint(&["--range", "HEAD~1..HEAD"]), "takes 3 ms");
    assert_complaint(repository.complaint(&["--branch"]), "takes 3 ms");
    assert_eq!(repository.complaint(&["--range", "HEAD..HEAD"]), None);
}
