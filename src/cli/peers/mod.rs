//! What users of other programs type, and what it is here. The only table of it: suggestions are
//! taken from it, and `docs/from-other-tools.md` and `docs/from-perftest.md` are made from it.

mod doca;
mod mpi;
mod other;
pub mod page;
mod perftest;
mod rdma;
mod sockets;
mod word;

pub use word::{Here, Peer, Word};

/// All of them. A word that several have is that of the first.
pub const PEERS: &[Peer] = &[
    sockets::IPERF3,
    sockets::SOCKPERF,
    perftest::PERFTEST,
    doca::DOCA,
    rdma::QPERF,
    sockets::NETPERF,
    mpi::OSU,
    mpi::IMB,
    mpi::PRESTA,
    mpi::GPCNET,
    other::HYPERFINE,
    other::USUAL,
];

/// What is typed, as it is compared: of long words neither case nor the kind of dash matters.
fn plain(typed: &str) -> String {
    match typed.trim_start_matches('-') {
        short if short.chars().count() < 2 => typed.to_owned(),
        _ => typed.to_ascii_lowercase().replace('_', "-"),
    }
}

/// Every word as typed, with its peer.
pub fn words() -> impl Iterator<Item = (&'static Peer, &'static str, &'static Word)> {
    let of_peer = |peer: &'static Peer| {
        let of_word = move |word: &'static Word| word.there.iter().map(move |t| (peer, *t, word));
        peer.words.iter().flat_map(of_word)
    };
    PEERS.iter().flat_map(of_peer)
}

/// The meanings of a word that fit, the likeliest first.
pub fn meanings(
    typed: &str,
    fits: impl Fn(&Word) -> bool,
) -> impl Iterator<Item = (&'static Peer, &'static Word)> {
    let typed = plain(typed);
    let is_meant = move |there: &str, word: &Word| plain(there) == typed && fits(word);
    words()
        .filter(move |(_, there, word)| is_meant(there, word))
        .map(|(peer, _, word)| (peer, word))
}
