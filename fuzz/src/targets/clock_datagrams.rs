//! Datagrams of clock exchanges from anywhere: one of the run with a finite time, or nothing. And
//! the times in them: whatever another host says, the clocks are compared without a panic.

use wiregauge::clock::LocalNs;
use wiregauge::clock::exchange::{TIMES, packet, read};
use wiregauge::clock::offset::{Exchange, Model};

/// Between two exchanges, and from sending to hearing, nanoseconds.
const EVERY: f64 = 1e6;
const ROUND_TRIP: f64 = 1e5;

/// Runs the target on one input.
pub fn run(data: &[u8]) {
    let cookie = *b"0123456789abcdef0123456789abcdef";
    if let Some((kind, number, time)) = read(&cookie, data) {
        assert!(TIMES.contains(&time));
        assert_eq!(packet(&cookie, kind, number, time)[..], *data);
    }
    let word = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let times = data.chunks_exact(16).enumerate().map(|(number, pair)| Exchange {
        sent: LocalNs(number as f64 * EVERY),
        reached: LocalNs(word(&pair[..8])),
        answered: LocalNs(word(&pair[8..])),
        heard: LocalNs(number as f64 * EVERY + ROUND_TRIP),
    });
    let is_read =
        |one: &Exchange| TIMES.contains(&one.reached.0) && TIMES.contains(&one.answered.0);
    let exchanges: Vec<Exchange> =
        times.filter(|one| is_read(one) && one.round_trip_ns() >= 0.0).collect();
    if let Some(model) = Model::fit(&exchanges) {
        for exchange in &exchanges {
            assert!(model.offset_at(exchange.sent).bound_ns >= 0.0, "{exchange:?}");
        }
    }
}
