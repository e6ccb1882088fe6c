//! The reduced samples as JSON for the viewer: `web/decode.js` reads what is written here.
//!
//! Long columns of numbers are base64 of LEB128 varints or of little-endian doubles: 1.4 to 11
//! characters a number, exact, and decoded in milliseconds.

use crate::curves::{self, Curve, Density, Reduced};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};
use std::mem;

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
    let mut last = 0;
    let steps = c.ranks.iter().map(|rank| rank - mem::replace(&mut last, *rank));
    json!({
        "run": c.run,
        "metric": c.metric,
        "count": c.count,
        "lost": c.lost,
        "ranks": varints(steps),
        "values": doubles(c.values.iter()),
    })
}

fn density(d: &Density) -> Value {
    let numbers = d.columns.iter().flat_map(|column| {
        let mut last = 0;
        let cells = column
            .cells
            .iter()
            .flat_map(move |(row, count)| [u64::from(row - mem::replace(&mut last, *row)), *count]);
        [column.lost, column.cells.len() as u64].into_iter().chain(cells)
    });
    json!({
        "run": d.run,
        "round": d.round,
        "start_ns": d.start_ns,
        "end_ns": d.end_ns,
        "columns": d.columns.len(),
        "cells": varints(numbers),
        "max": doubles(d.columns.iter().map(|c| &c.max_ns)),
    })
}

fn doubles<'a>(values: impl Iterator<Item = &'a f64>) -> String {
    BASE64_STANDARD.encode(values.flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>())
}

fn varints(numbers: impl Iterator<Item = u64>) -> String {
    BASE64_STANDARD.encode(leb128(numbers))
}

/// The form in which postcard writes whole numbers.
fn leb128(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    // Writing to a vector does not fail.
    numbers.fold(Vec::new(), |bytes, n| postcard::to_extend(&n, bytes).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_rfc_4648() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, coded) in cases {
            assert_eq!(BASE64_STANDARD.encode(plain), coded);
        }
    }

    #[test]
    fn varints_are_leb128() {
        let out = leb128([0, 127, 128, 300, u64::MAX].into_iter());
        assert_eq!(out[..6], [0, 127, 0x80, 1, 0xac, 2]);
        assert_eq!(out.len(), 6 + 10);
    }
}
