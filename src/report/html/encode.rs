//! The reduced samples as JSON for the viewer: `web/decode.js` reads what is written here.
//!
//! Long columns of numbers are base64 of LEB128 varints or of little-endian doubles: 1.4 to 11
//! characters a number, exact, and decoded in milliseconds.

use crate::report::curves::{self, Curve, Density, Reduced};
use serde_json::{Value, json};

/// All that the viewer needs beside the record.
pub fn samples(reduced: &Reduced) -> String {
    json!({
        "bins_per_decade": curves::BINS_PER_DECADE,
        "curves": reduced.curves.iter().map(curve).collect::<Vec<_>>(),
        "densities": reduced.densities.iter().map(density).collect::<Vec<_>>(),
    })
    .to_string()
}

fn curve(c: &Curve) -> Value {
    let mut ranks = Vec::new();
    let mut last = 0;
    for rank in &c.ranks {
        push_varint(&mut ranks, rank - last);
        last = *rank;
    }
    json!({
        "run": c.run,
        "metric": c.metric,
        "count": c.count,
        "lost": c.lost,
        "ranks": base64(&ranks),
        "values": doubles(&c.values),
    })
}

fn density(d: &Density) -> Value {
    let mut cells = Vec::new();
    for column in &d.columns {
        push_varint(&mut cells, column.lost);
        push_varint(&mut cells, column.cells.len() as u64);
        let mut last = 0;
        for (row, count) in &column.cells {
            push_varint(&mut cells, u64::from(row - last));
            push_varint(&mut cells, *count);
            last = *row;
        }
    }
    json!({
        "run": d.run,
        "round": d.round,
        "start_ns": d.start_ns,
        "end_ns": d.end_ns,
        "columns": d.columns.len(),
        "cells": base64(&cells),
        "max": doubles(&d.columns.iter().map(|c| c.max_ns).collect::<Vec<_>>()),
    })
}

fn doubles(values: &[f64]) -> String {
    base64(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

fn push_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// RFC 4648 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0_u32, |w, (i, b)| w | u32::from(*b) << (16 - 8 * i));
        for i in 0..4 {
            if i <= chunk.len() {
                out.push(char::from(ALPHABET[(word >> (18 - 6 * i)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in cases {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn varints_are_leb128() {
        let mut out = Vec::new();
        [0, 127, 128, 300, u64::MAX].into_iter().for_each(|n| push_varint(&mut out, n));
        assert_eq!(out[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(out.len(), 6 + 10);
    }
}
