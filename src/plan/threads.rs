//! What several threads of an end cannot do.

use super::request::{MOST_COUNT, MOST_THREADS, Request, UsageError, refuse, within};

impl Request {
    /// Whether several threads can do what is asked.
    pub(super) fn check_threads(&self) -> Result<(), UsageError> {
        for threads in &self.threads {
            within("--threads", Some(u64::from(*threads)), 1, u64::from(MOST_THREADS))?;
            let messages = self.count.map(|count| count.saturating_mul(u64::from(*threads)));
            if messages.is_some_and(|messages| messages > MOST_COUNT) {
                return refuse(format!(
                    "--count is per thread: {} messages in each of {threads} threads exceed the \
                     limit of {MOST_COUNT} per round",
                    self.count.unwrap_or_default()
                ));
            }
        }
        let several = self.threads.iter().any(|threads| *threads > 1);
        if several && self.settings.stamps_send() {
            return refuse("--stamp-send needs a second thread of its own: use --threads 1");
        }
        Ok(())
    }
}
