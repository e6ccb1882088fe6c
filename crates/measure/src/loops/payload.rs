//! What messages hold: a sequence number in front, and filling that a receiver can verify.

/// Writes the sequence number, as much of it as fits: little endian, at most 8 bytes.
#[inline(always)]
pub fn number(payload: &mut [u8], sequence: u64) {
    if let Some(front) = payload.first_chunk_mut::<8>() {
        *front = sequence.to_le_bytes();
    } else {
        number_short(payload, sequence);
    }
}

/// Writes a message: its number, and the rest where the receiver verifies it.
#[inline(always)]
pub fn write(payload: &mut [u8], sequence: u64, check: bool) {
    if check { fill(payload, sequence) } else { number(payload, sequence) }
}

/// Out of line, as is [`fill`]: inside a loop it would take the registers of the usual case.
#[inline(never)]
fn number_short(payload: &mut [u8], sequence: u64) {
    let bytes = sequence.to_le_bytes();
    let length = payload.len();
    payload.copy_from_slice(&bytes[..length]);
}

/// Reads a sequence number. Of a message below 8 bytes only the low part was sent: the number is
/// the one nearest to `near` that ends so.
#[inline(always)]
pub fn sequence(payload: &[u8], near: u64) -> u64 {
    if let Some(front) = payload.first_chunk::<8>() {
        return u64::from_le_bytes(*front);
    }
    sequence_short(payload, near)
}

#[inline(never)]
fn sequence_short(payload: &[u8], near: u64) -> u64 {
    let mut bytes = [0; 8];
    bytes[..payload.len()].copy_from_slice(payload);
    let bits = 8 * payload.len() as u32;
    let low = u64::from_le_bytes(bytes);
    // The distance from `near`, as a signed number of `bits` bits.
    let ahead = low.wrapping_sub(near) << (64 - bits);
    near.wrapping_add_signed(ahead as i64 >> (64 - bits))
}

/// One word of the filling: a cheap bijection of position and sequence (splitmix64's finaliser), so
/// that a shifted, stale or swapped message shows.
#[inline]
fn word(sequence: u64, position: u64) -> u64 {
    let mut x = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(position);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Numbers a message and fills the rest.
#[inline(never)]
pub fn fill(payload: &mut [u8], sequence: u64) {
    number(payload, sequence);
    let rest = payload.get_mut(8..).unwrap_or_default();
    for (position, chunk) in rest.chunks_mut(8).enumerate() {
        let bytes = word(sequence, position as u64).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// Whether a message is what [`fill`] made of this sequence number.
#[inline(never)]
pub fn verify(payload: &[u8], sequence: u64) -> bool {
    let front = payload.len().min(8);
    let rest = payload.get(8..).unwrap_or_default();
    payload[..front] == sequence.to_le_bytes()[..front]
        && rest.chunks(8).enumerate().all(|(position, chunk)| {
            chunk == &word(sequence, position as u64).to_le_bytes()[..chunk.len()]
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_survives_any_size(
            near in 1_000_000u64..1 << 60, ahead in -100i64..100, size in 1usize..40
        ) {
            let sequence_number = near.wrapping_add_signed(ahead);
            let mut message = vec![0; size];
            number(&mut message, sequence_number);
            prop_assert_eq!(sequence(&message, near), sequence_number);
        }

        #[test]
        fn one_changed_byte_is_seen(
            sequence_number: u64, size in 1usize..200, at: prop::sample::Index, flip in 1u8..
        ) {
            let mut message = vec![0; size];
            fill(&mut message, sequence_number);
            prop_assert!(verify(&message, sequence_number));
            message[at.index(size)] ^= flip;
            prop_assert!(!verify(&message, sequence_number));
        }
    }
}
