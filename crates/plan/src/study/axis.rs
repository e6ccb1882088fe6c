//! What a figure stands against: the quantity of a case that a graph has below it.

use super::GraphKind;

wiregauge_base::options::named_enum! {
    /// A quantity in which the cases of a series differ.
    #[derive(PartialOrd, Ord)]
    pub enum Axis {
        /// Payload of a message, in bytes.
        Size = "size",
        /// Values of a sample of a stream.
        Values = "values",
        /// Messages that the schedule intends per second.
        Rate = "rate",
        /// Messages that were answered or arrived per second: measured, not asked for.
        Answered = "answered",
        /// Clients of a closed loop.
        Clients = "clients",
        /// Connections of each pair of threads.
        Connections = "connections",
    }
}

impl Axis {
    /// What it is called in a refusal, and which cases have it.
    pub const fn words(self) -> [&'static str; 2] {
        match self {
            Axis::Size => ["size", "every command"],
            Axis::Values => ["number of values", "stream"],
            Axis::Rate => ["rate", "load, oneway and stream with rate"],
            Axis::Answered => ["rate of answers", "load, and oneway and stream with rate"],
            Axis::Clients => ["number of clients", "load with clients"],
            Axis::Connections => ["number of connections", "latency, load and rpc"],
        }
    }
}

impl GraphKind {
    /// What its figures stand against; none: they stand side by side, or are distributions.
    pub const fn axes(self) -> &'static [Axis] {
        match self {
            GraphKind::Cdf | GraphKind::Histogram | GraphKind::Bars => &[],
            GraphKind::AgainstSize => &[Axis::Size],
            GraphKind::AgainstValues => &[Axis::Values],
            GraphKind::AgainstRate => &[Axis::Rate],
            GraphKind::AgainstAnswered => &[Axis::Answered],
            GraphKind::AgainstClients => &[Axis::Clients],
            GraphKind::AgainstConnections => &[Axis::Connections],
            GraphKind::Surface => &[Axis::Rate, Axis::Values],
        }
    }
}
