//! The memory of all rounds of a daemon: a round is refused if the total would exceed the limit.

use crate::locked;
use std::sync::{Arc, Mutex};
use wiregauge_base::units::Bytes;

/// Bytes that all sessions have reserved together.
#[derive(Clone, Debug, Default)]
pub struct Ledger(Arc<Mutex<u64>>);

/// The reservation of one session; dropping it releases the memory.
#[derive(Debug)]
pub struct Reserved {
    ledger: Ledger,
    bytes: u64,
}

impl Ledger {
    /// An empty reservation for a new session.
    pub fn session(&self) -> Reserved {
        Reserved { ledger: self.clone(), bytes: 0 }
    }
}

impl Reserved {
    /// Raises this reservation to at least `bytes`. The error says that all sessions together would
    /// then exceed `most`.
    pub fn raise(&mut self, bytes: Bytes, most: Bytes) -> Result<(), String> {
        let more = bytes.0.saturating_sub(self.bytes);
        let mut all = locked(&self.ledger.0);
        let used = *all;
        ensure!(
            used.saturating_add(more) <= most.0,
            "the round needs {bytes} of memory, but {} of the {most} that this agent allows for \
             all rounds are in use (--total-memory)",
            Bytes(used)
        );
        *all += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        *locked(&self.ledger.0) -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_what_there_is_and_give_it_back() {
        let (ledger, most) = (Ledger::default(), Bytes(100));
        let (mut one, mut two) = (ledger.session(), ledger.session());
        assert_eq!(one.raise(Bytes(60), most), Ok(()));
        assert_eq!(one.raise(Bytes(50), most), Ok(()), "less than it has");
        let wrong = two.raise(Bytes(41), most).unwrap_err();
        assert!(wrong.contains("60 B of the 100 B") && wrong.contains("--total-memory"), "{wrong}");
        assert_eq!(two.raise(Bytes(40), most), Ok(()));
        drop(one);
        assert_eq!(two.raise(Bytes(100), most), Ok(()));
        drop(two);
        assert_eq!(*ledger.0.lock().unwrap(), 0);
    }
}
