//! Bounds of time for tests.
#![allow(unused_imports)]

pub use wiregauge_test_support::bounded::*;
