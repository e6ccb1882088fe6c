//! Reads the forms in which VILLASnode keeps samples.

pub use wiregauge_test_support::villas::*;
