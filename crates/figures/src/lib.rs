//! Explanations, records and views: what is known of a run when it is over.

#[macro_use(ensure)]
extern crate wiregauge_base;

pub mod explain;
pub mod record;
pub mod view;
