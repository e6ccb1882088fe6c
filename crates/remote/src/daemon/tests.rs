//! Identities on disk, and who makes room for whom.

use super::identity::{peers, read, write};
use super::*;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::thread;
use wiregauge_measure::control::secret;
use wiregauge_patterns::registry;
use wiregauge_test_support::bounded::Bound;

/// A folder that goes away with its owner.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let name = secret::to_hex(secret::fresh::<32>().unwrap());
        Folder(std::env::temp_dir().join(format!("wiregauge-{}", &name[..16])))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_host_has_one_identity_that_only_its_owner_reads() {
    let _bound = Bound::new();
    let folder = Folder::new();
    let made: Vec<_> = (0..8)
        .map(|_| folder.0.clone())
        .map(|folder| thread::spawn(move || Identity::of_host(&folder).unwrap().certificate))
        .collect();
    let made: Vec<_> = made.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(made.iter().all(|one| *one == made[0]), "who makes it at once makes the same");
    let file = folder.0.join("identity.pem");
    assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
    assert_eq!(folder.0.metadata().unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left beside it");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let wrong = Identity::of_host(&folder.0).err().unwrap();
    assert!(wrong.contains("is readable by other users") && wrong.contains("chmod 600"), "{wrong}");
    fs::write(&file, "nothing").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let wrong = Identity::of_host(&folder.0).err().unwrap();
    assert!(wrong.contains("holds no valid identity"), "{wrong}");
}

#[test]
fn what_is_no_certificate_lets_nobody_in() {
    let folder = Folder::new();
    assert!(peers(&folder.0).unwrap().is_empty(), "no folder is nobody");
    let one = Identity::fresh().unwrap();
    write(&folder.0.join("one.pem"), &one.pem, true).unwrap();
    write(&folder.0.join("broken.pem"), "nothing", true).unwrap();
    write(&folder.0.join("other.txt"), &one.pem, true).unwrap();
    let known = peers(&folder.0).unwrap();
    assert_eq!(known.len(), 1);
    assert_eq!((known[0].name.as_str(), &known[0].certificate), ("one", &one.certificate));
    assert_eq!(read(&folder.0.join("none")).unwrap(), None);
}

#[test]
fn the_one_who_has_waited_longest_makes_room() {
    let _bound = Bound::new();
    let folder = Folder::new();
    let trust = Trust::Folder(folder.0.clone());
    let daemon = Daemon::new(
        AgentProgram::Other("".into()),
        registry::find,
        Identity::fresh().unwrap(),
        trust,
        true,
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let mut pairs: Vec<(TcpStream, TcpStream, Arc<TcpStream>)> = Vec::new();
    for _ in 0..=MOST_HANDSHAKES {
        let theirs = TcpStream::connect(at).unwrap();
        let ours = listener.accept().unwrap().0;
        let place = daemon.wait(&ours).unwrap();
        pairs.push((theirs, ours, place));
    }
    let is_cut = |socket: &TcpStream| {
        socket.set_nonblocking(true).unwrap();
        matches!(socket.peek(&mut [0]), Ok(0))
    };
    assert!(is_cut(&pairs[0].1) && !is_cut(&pairs[1].1));
    pairs.clear();
    assert!(locked(&daemon.handshakes).iter().all(|one| one.upgrade().is_none()));
}

#[test]
fn ipv4_over_a_socket_of_ipv6_is_ipv4() {
    let at = |text: &str| text.parse::<SocketAddr>().unwrap();
    assert_eq!(unmapped(at("[::ffff:10.0.0.7]:80")), at("10.0.0.7:80"));
    assert_eq!(unmapped(at("[fe80::1%3]:80")), at("[fe80::1%3]:80"));
}

#[test]
fn an_address_that_is_in_use_is_a_sentence() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap();
    let fault = listen(at).unwrap_err();
    assert!(fault.to_string().contains("is in use by another daemon or program"), "{fault}");
    let elsewhere = "192.0.2.1:7425".parse().unwrap();
    let fault = listen(elsewhere).unwrap_err().to_string();
    assert!(fault.contains("not an address of this host"), "{fault}");
}
