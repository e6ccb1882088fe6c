//! `mpi`: messages between two ranks of an MPI launch, by whichever MPI is installed.
//!
//! * Control: this file, `process`, which is this process as a rank of its launch, and
//!   `launcher`, the command that starts the ranks.
//! * Data: `endpoint`, over `queue`, which keeps requests in the order of posting, and
//!   `memory`; `remote`, operations on the other rank's memory, over `window`; `beside`, what two
//!   ends tell each other beside the messages; `collective`, the operations of all ranks.
//!
//! A message is an `MPI_Isend` into an `MPI_Irecv` that was posted before. MPI bounds neither what
//! a sender has on its way nor what waits unexpected at a receiver, so that a stream's receiver
//! tells its sender how much it has taken, by messages with a tag of their own.

mod beside;
mod collective;
mod endpoint;
mod launcher;
mod memory;
mod process;
mod queue;
mod remote;
mod window;

use super::*;
use beside::Line;
use collective::CollectiveEndpoint;
pub use endpoint::MpiEndpoint;
use fabric_sys::mpi::Mpi;
use process::{Process, Tags};
use remote::RemoteEndpoint;
use wiregauge_base::options::{OptionDef, names};
use wiregauge_base::units::Bytes;

/// Most bytes of the buffers that messages arrive in, beyond two.
const RECEIVE_BYTES: usize = 16 << 20;
/// Receives that are posted for a stream of small messages: as many as one poll hands over.
const MOST_RECEIVES: usize = MOST_EVENTS;

/// The command that starts the ranks.
const MPIRUN: OptionDef = OptionDef::text(
    "mpirun",
    |text| launcher::words(text).map(drop),
    "Command that starts both ranks, with its own options, such as 'mpirun.mpich -bind-to none'",
)
.metavar("COMMAND")
.default("mpirun");
/// The library.
const LIBRARY: OptionDef =
    OptionDef::path("mpi-library", "MPI library of the ranks, such as /opt/mpi/lib/libmpi.so.40")
        .metavar("FILE")
        .default_note("beside the launcher, else the system's of the same implementation");

/// The transport.
pub const DESCRIPTOR: Descriptor = Descriptor {
    about: "messages between two MPI ranks, by any MPI library that is installed",
    largest: Bytes::MIB.0 * 64,
    between_hosts: true,
    traffic: &[
        Traffic::Echo { every: 1 },
        Traffic::Forward,
        Traffic::Both,
        Traffic::OneSided,
        Traffic::Collective,
    ],
    settings: &[settings::OPERATION, MPIRUN, LIBRARY],
    path: "MPI_Isend, whatever way the MPI library takes, MPI_Test of a posted MPI_Irecv; or \
           MPI_Put, MPI_Get or an atomic, and MPI_Win_flush",
    memory_beside_slots,
    least_buffer_bytes: memory_beside_slots,
    launcher: Some(launcher::command),
    found: launcher::found,
    leave: process::leave,
    available: launcher::available,
    check,
    ..Descriptor::opened_by(open)
};

fn check(request: &TransportRequest<'_>) -> Result<(), String> {
    let wait = request.wait;
    ensure!(
        !wait.sleeps(),
        "mpi does not support --wait {}: MPI has no descriptor to sleep on; use --wait busy",
        wait.name()
    );
    let (operation, size) = (request.settings.operation(), request.size);
    ensure!(
        OPERATIONS.contains(&operation),
        "mpi does not support --operation {}, since its operations carry no immediate value: use \
         {}",
        operation.name(),
        names(OPERATIONS)
    );
    ensure!(
        request.traffic != Traffic::Collective || operation == Operation::Send,
        "collective does not support --operation: its operations are those of --collective"
    );
    ensure!(
        !operation.is_atomic() || size == 8,
        "--size {size} B is not allowed with --operation {}: use 8, the size of an atomic",
        operation.name()
    );
    Ok(())
}

/// Refuses what ends Open MPI 4.1.4 by SIGSEGV at the target, in a program of a few lines too, and
/// windows of several threads, which wait for each other there.
fn check_sound(mpi: &Mpi, setup: &Setup) -> Result<()> {
    let operation = setup.settings.operation();
    ensure!(
        setup.threads == 1 || !mpi.version.starts_with("Open MPI"),
        SetupError::NotAllowed(format!(
            "{} makes no windows in several threads at once: use --threads 1, or --operation send",
            mpi.version
        ))
    );
    let is_sound = operation != Operation::CompareSwap || !mpi.version.starts_with("Open MPI v4");
    ensure!(
        is_sound,
        SetupError::NotAllowed(format!(
            "{} crashes in MPI_Compare_and_swap: use --operation fetch_add, or another MPI",
            mpi.version
        ))
    );
    Ok(())
}

/// What a post can do.
const OPERATIONS: &[Operation] = &[
    Operation::Send,
    Operation::Write,
    Operation::Read,
    Operation::FetchAdd,
    Operation::CompareSwap,
];

/// The buffers of arrivals, or the window.
fn memory_beside_slots(setup: &Setup) -> u64 {
    let receives = receives(setup);
    let bytes = match setup.settings.operation() {
        Operation::Send => receives.saturating_mul(memory::stride(setup.size)),
        _ => remote::window_bytes(setup, receives),
    };
    bytes as u64
}

/// Buffers for messages that arrive: twice those of a window, since the memory of one that has
/// arrived is given back with the next poll. A stream has as many as one poll hands over.
fn receives(setup: &Setup) -> usize {
    if setup.traffic == Traffic::Collective {
        return 0;
    }
    let is_echo = matches!(setup.traffic, Traffic::Echo { .. });
    let wanted = if is_echo { 2 * setup.window as usize } else { MOST_RECEIVES };
    let room = RECEIVE_BYTES / memory::stride(setup.size);
    wanted.min(room).clamp(2, MOST_RECEIVES)
}

/// What the other end needs to know: the number of ranks, which of them this is, its process, and
/// the first of its tags.
fn address(process: &Process, tags: Tags) -> Blob {
    let Process { rank, size, .. } = process;
    Blob(format!("mpi {size} {rank} {} {}", std::process::id(), tags.data).into_bytes())
}

/// The rank of the other end, and its tags.
fn peer(process: &Process, other: &Blob) -> Result<(i32, Tags)> {
    let mut words = other.text()?.split(' ');
    let is_mpi = words.next() == Some("mpi");
    let mut number = || words.next().and_then(|word| word.parse::<u32>().ok());
    let (Some(size), Some(rank), Some(pid), Some(tag)) = (number(), number(), number(), number())
    else {
        return Err(SetupError::Address);
    };
    let tags = Tags::of_data(tag as i32).filter(|_| is_mpi).ok_or(SetupError::Address)?;
    let is_alone = size == 1 && pid != std::process::id();
    if is_alone || size as i32 != process.size || rank >= size {
        return Err(SetupError::Refused(format!(
            "the MPI processes are not ranks of one launch (one has rank {} of {}, the other rank \
             {rank} of {size}): with srun use --mpi=pmix or --mpi=pmi2, as the MPI library needs",
            process.rank, process.size
        )));
    }
    Ok((rank as i32, tags))
}

fn open(setup: &Setup) -> Result<Opening> {
    let process = Process::of(&setup.settings, setup.threads > 1)?;
    let tags = Tags::next();
    let setup = setup.clone();
    Ok(Opening::new(address(process, tags), move |other| {
        let (rank, theirs) = peer(process, other)?;
        let receives = receives(&setup);
        let mut effective_settings: NamedValues = vec![
            ("mpi".into(), process.mpi.version.clone()),
            ("mpi_abi".into(), process.mpi.abi.name().into()),
            ("mpi_library".into(), process.mpi.file.clone()),
            ("mpi_rank".into(), format!("{} of {}", process.rank, process.size)),
            ("rounds_of_process".into(), process.round(setup.threads).to_string()),
        ];
        if setup.traffic == Traffic::Collective {
            let endpoint = CollectiveEndpoint::new(process, &setup);
            return Ok(Connected { effective_settings, ..Connected::new(endpoint) });
        }
        let (line, tags) = (Line::new(process, rank), (tags, theirs));
        let operation = setup.settings.operation();
        effective_settings.push(("operation".into(), operation.name().into()));
        if operation == Operation::Send {
            effective_settings.push(("posted_receives".into(), receives.to_string()));
            let endpoint = MpiEndpoint::connect(line, &setup, receives, tags)?;
            return Ok(Connected { effective_settings, ..Connected::new(endpoint) });
        }
        check_sound(&process.mpi, &setup)?;
        let bytes = remote::window_bytes(&setup, receives);
        effective_settings.push(("window_bytes".into(), bytes.to_string()));
        let endpoint = RemoteEndpoint::connect(line, &setup, receives, tags)?;
        Ok(Connected { effective_settings, ..Connected::new(endpoint) })
    }))
}
