//! What a secret looks like, how long it lives, and where certificates lie.

use super::super::tests::Folder;
use super::*;

#[test]
fn a_secret_is_typed_as_it_is_printed_or_without_its_dashes() {
    let secret = Secret::fresh().unwrap();
    let text = secret.to_string();
    assert_eq!(text.len(), 39);
    assert_eq!(text.parse(), Ok(secret));
    assert_eq!(format!(" {}\n", text.replace('-', "").to_uppercase()).parse(), Ok(secret));
    assert_ne!(Secret::fresh().unwrap(), secret);
    assert!(!format!("{secret:?}").contains(&text[..4]), "it is not shown by chance");
    for wrong in ["", "1234", &text[1..], &format!("{text}0"), "zz", "é".repeat(16).as_str()] {
        assert!(wrong.parse::<Secret>().is_err(), "{wrong}");
    }
}

#[test]
fn a_secret_is_used_once() {
    let folder = Folder::new();
    assert!(Offer::open(&folder.0).unwrap_err().contains("no pairing is open"));
    let secret = offer(&folder.0).unwrap();
    let (first, second) = (Offer::open(&folder.0).unwrap(), Offer::open(&folder.0).unwrap());
    assert_eq!(first.secret, secret);
    assert_eq!(first.claim(), Ok(()));
    assert!(second.claim().unwrap_err().contains("already used"));
    assert!(Offer::open(&folder.0).is_err());
}

#[test]
fn a_secret_expires() {
    let folder = Folder::new();
    let secret = offer(&folder.0).unwrap();
    assert!(Offer::open(&folder.0).is_ok());
    let past = wall_clock::now() - SignedDuration::from_secs(1);
    write(&folder.0.join(OFFER), &format!("{secret}\n{past}\n"), true).unwrap();
    assert!(Offer::open(&folder.0).unwrap_err().contains("expired"));
    assert!(!folder.0.join(OFFER).exists());
}

#[test]
fn no_name_leads_out_of_the_folder() {
    assert_eq!(file_name_of("me@node07"), "me@node07");
    assert_eq!(file_name_of("../../etc/x y\n"), "______etc_x_y_");
    let file = agent_file(Path::new("/c"), "../../Etc", 80);
    assert_eq!(file, Path::new("/c/agents/.._.._etc:80.pem"));
}

#[test]
fn what_is_no_certificate_is_not_kept() {
    let card = |certificate: String| Card { name: "a".into(), certificate }.check();
    assert!(card(Identity::fresh().unwrap().pem).is_ok());
    assert!(card("nothing".into()).is_err());
    assert!(card(" ".repeat(20_000)).unwrap_err().contains("too long"));
}
