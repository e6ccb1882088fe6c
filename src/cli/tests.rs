//! What the command line promises.

use super::*;
