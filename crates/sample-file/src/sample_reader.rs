//! Reads `samples.parquet` back, a round at a time.
//!
//! The file may come from anywhere. The Parquet library checks much and trusts some sizes, so what
//! it would allocate by is checked before: the footer's length, the rows of a group, where each
//! column lies, and each page's size when it is unpacked.

use crate::error::{RecordError, quoted};
use crate::samples::{COLUMNS, GROUP_ROWS, GROUPS, MAX_ROUND_ROWS, SCHEMA, VERSION, schema};
use parquet::basic::{Compression, Encoding};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use std::collections::BTreeMap;

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wiregauge_host::open_file;
use wiregauge_sample::{Flags, RoundSamples, Sample};

/// Longest footer that is read: [`GROUPS`] groups of 11 columns at about 1 KiB each, twice.
const FOOTER_LIMIT: u64 = 16 << 20;
/// Largest page when unpacked. Writers make pages of about 1 MiB.
const PAGE_LIMIT: i32 = 32 << 20;
/// Bytes of the shortest Parquet file: the magic word twice and the footer's length.
const SHORTEST: u64 = 12;
/// The footer's length and the magic word.
const TAIL: u64 = 8;

/// Rows by run and round.
pub type RowsByRound = BTreeMap<(u32, u32), u64>;

/// A `samples.parquet` that is open for reading.
pub struct SampleReader {
    file: Arc<Guarded>,
    meta: ParquetMetaData,
    path: PathBuf,
    /// The next row group; none has such a number after an error.
    next: usize,
    /// A group that was read and belongs to the round after the one that was given.
    ahead: Option<RoundSamples>,
}

impl SampleReader {
    /// Opens a file and checks its footer.
    pub fn open(path: &Path) -> Result<SampleReader, RecordError> {
        let failed = |source| RecordError::reading(path, source);
        let file = open_file(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        let guarded = Guarded { file, length: meta.len() };
        check_footer(path, &guarded)?;
        let meta = decode(path, || ParquetMetaDataReader::new().parse_and_finish(&guarded))?;
        check(&meta, guarded.length).map_err(|why| RecordError::samples(path, why))?;
        let (file, path) = (Arc::new(guarded), path.to_path_buf());
        Ok(SampleReader { file, meta, path, next: 0, ahead: None })
    }

    /// How many rows each round has.
    pub fn rows_by_round(&self) -> Result<RowsByRound, RecordError> {
        let mut rows = RowsByRound::new();
        for meta in self.meta.row_groups() {
            let group = Group { file: &self.file, meta };
            let read = || Ok((group.round()?, group.rows()? as u64));
            let (round, count) = decode(&self.path, read)?;
            *rows.entry(round).or_default() += count;
        }
        match rows.iter().find(|(_, rows)| **rows > MAX_ROUND_ROWS) {
            None => Ok(rows),
            Some(((run, round), rows)) => Err(RecordError::samples(
                &self.path,
                format!(
                    "round {round} of run {run} has {rows} rows, more than the {MAX_ROUND_ROWS} \
                     that a round may have"
                ),
            )),
        }
    }

    /// A part of a round: one row group. The memory is bounded by [`GROUP_ROWS`].
    ///
    /// After an error there is nothing more.
    pub fn next_part(&mut self) -> Option<Result<RoundSamples, RecordError>> {
        if let Some(part) = self.ahead.take() {
            return Some(Ok(part));
        }
        while let Some(meta) = self.meta.row_groups().get(self.next) {
            let group = Group { file: &self.file, meta };
            let read = decode(&self.path, || group.samples());
            self.next = if read.is_ok() { self.next + 1 } else { usize::MAX };
            if !read.as_ref().is_ok_and(|part| part.samples.is_empty()) {
                return Some(read);
            }
        }
        None
    }
}

/// The rounds, each whole: the memory is bounded by [`MAX_ROUND_ROWS`].
///
/// A round without samples has left no row and does not come. After an error there is nothing
/// more.
impl Iterator for SampleReader {
    type Item = Result<RoundSamples, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut round = match self.next_part()? {
            Ok(part) => part,
            failed => return Some(failed),
        };
        loop {
            let part = match self.next_part() {
                None => return Some(Ok(round)),
                Some(Ok(part)) => part,
                failed => return failed,
            };
            if (part.run, part.round) != (round.run, round.round) {
                self.ahead = Some(part);
                return Some(Ok(round));
            }
            if (round.samples.len() + part.samples.len()) as u64 > MAX_ROUND_ROWS {
                self.next = usize::MAX;
                let why = format!("a round has more than {MAX_ROUND_ROWS} rows");
                return Some(Err(RecordError::samples(&self.path, why)));
            }
            round.samples.extend_from_slice(&part.samples);
        }
    }
}

/// Runs a piece of the Parquet library on bytes from outside.
///
/// Its decoders check most of what they read by errors and some by assertions and indices, which
/// differ between releases. A panic there is a damaged file and not a bug of ours, so it becomes
/// the same sentence. This is the last resort: what is known to be trusted is checked before. The
/// library's values are dropped after an error, so that none is seen half changed.
fn decode<T>(
    path: &Path,
    read: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, RecordError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        // A refusal of the system says nothing of the file.
        Ok(Err(e)) => Err(match refusal(&e) {
            Some(number) => RecordError::reading(path, io::Error::from_raw_os_error(number)),
            None => RecordError::samples(path, quoted(&e.to_string())),
        }),
        Err(_) => Err(RecordError::samples(path, "it is damaged and cannot be decoded")),
    }
}

/// Returns the system's number of an error that it has given.
fn refusal(error: &ParquetError) -> Option<i32> {
    let ParquetError::External(inner) = error else { return None };
    inner.downcast_ref::<io::Error>()?.raw_os_error()
}

/// The row groups that a footer describes, which stands alone.
pub fn groups_of(path: &Path, footer: &[u8]) -> Result<Vec<RowGroupMetaData>, RecordError> {
    let short = || RecordError::samples(path, "a part of its footer is too short");
    let length = footer.len().checked_sub(TAIL as usize).ok_or_else(short)?;
    let read = || ParquetMetaDataReader::decode_metadata(&footer[..length]);
    Ok(decode(path, read)?.row_groups().to_vec())
}

/// The footer's length against the file's, before the library allocates by it.
fn check_footer(path: &Path, file: &Guarded) -> Result<(), RecordError> {
    let failed = |source| RecordError::reading(path, source);
    let wrong = |why: String| RecordError::samples(path, why);
    ensure!(file.length > 0, RecordError::empty_samples(path));
    let short = || format!("it has {} bytes, too few for a Parquet file", file.length);
    ensure!(file.length >= SHORTEST, wrong(short()));
    let mut tail = [0; TAIL as usize];
    let mut reader = &file.file;
    reader.seek(SeekFrom::Start(file.length - TAIL)).map_err(failed)?;
    reader.read_exact(&mut tail).map_err(failed)?;
    let [a, b, c, d, magic @ ..] = tail;
    ensure!(&magic == b"PAR1", wrong("it does not end as a Parquet file does".into()));
    let footer = u64::from(u32::from_le_bytes([a, b, c, d]));
    let beyond = || format!("its footer would be {footer} bytes, longer than the file");
    ensure!(footer <= file.length - SHORTEST, wrong(beyond()));
    let above = || format!("its footer is {footer} bytes, above the limit of {FOOTER_LIMIT}");
    ensure!(footer <= FOOTER_LIMIT, wrong(above()));
    Ok(())
}

/// What the footer says, against the file's length and against our schema and limits.
fn check(meta: &ParquetMetaData, length: u64) -> Result<(), String> {
    check_version(meta)?;
    check_columns(meta)?;
    let groups = meta.num_row_groups();
    ensure!(groups <= GROUPS, "it has {groups} row groups of {GROUPS}");
    let mut rows = 0i64;
    for (index, group) in meta.row_groups().iter().enumerate() {
        check_group(group, length).map_err(|why| format!("row group {index}: {why}"))?;
        rows = rows.saturating_add(group.num_rows());
    }
    let is_right = rows == meta.file_metadata().num_rows();
    ensure!(is_right, "its footer contradicts its row groups on the number of rows");
    Ok(())
}

fn check_version(meta: &ParquetMetaData) -> Result<(), String> {
    let pairs = meta.file_metadata().key_value_metadata();
    let value = |key: &str| pairs?.iter().find(|p| p.key == key)?.value.as_deref();
    let missing = || format!("its metadata has no wiregauge.schema = '{SCHEMA}'");
    let found = value("wiregauge.schema").ok_or_else(missing)?;
    ensure!(found == SCHEMA, "its schema is '{found}', expected '{SCHEMA}'");
    match value("wiregauge.version").map(str::parse::<u32>) {
        Some(Ok(version)) if version == VERSION => Ok(()),
        Some(Ok(other)) => Err(format!("its version is {other}; this build reads {VERSION}")),
        _ => Err("its metadata has no whole number as wiregauge.version".to_string()),
    }
}

fn check_columns(meta: &ParquetMetaData) -> Result<(), String> {
    let expected = schema().map_err(|error| error.to_string())?;
    let columns = meta.file_metadata().schema().get_fields();
    let (own, all) = (columns.len(), COLUMNS.len());
    ensure!(own == all, "it has {own} columns of {all}");
    for (column, expected) in columns.iter().zip(expected.get_fields()) {
        let (name, wanted) = (column.name(), expected.name());
        ensure!(column == expected, "its column '{name}' is not the expected '{wanted}'");
    }
    Ok(())
}

fn check_group(group: &RowGroupMetaData, length: u64) -> Result<(), String> {
    let rows = group.num_rows();
    let is_small = (0..=GROUP_ROWS as i64).contains(&rows);
    ensure!(is_small, "it has {rows} rows, expected 0 to {GROUP_ROWS}");
    let columns = group.num_columns();
    ensure!(columns == COLUMNS.len(), "it has {columns} columns");
    for (column, name) in group.columns().iter().zip(COLUMNS) {
        let values = column.num_values();
        ensure!(values == rows, "column {name} has {values} values");
        let is_plain = column.dictionary_page_offset().is_none();
        ensure!(is_plain, "column {name} has a dictionary, which wiregauge never writes");
        let is_ours =
            matches!(column.compression(), Compression::SNAPPY | Compression::UNCOMPRESSED);
        ensure!(is_ours, "column {name} is not compressed with snappy");
        let known = [
            Encoding::PLAIN,
            Encoding::RLE,
            Encoding::DELTA_BINARY_PACKED,
            Encoding::BYTE_STREAM_SPLIT,
        ];
        let are_known = column.encodings().all(|e| known.contains(&e));
        ensure!(are_known, "column {name} has an encoding that wiregauge never writes");
        let start = u64::try_from(column.data_page_offset()).ok();
        let size = u64::try_from(column.compressed_size()).ok();
        let end = start.zip(size).and_then(|(start, size)| start.checked_add(size));
        let inside = end.is_some_and(|end| end <= length - TAIL);
        ensure!(inside, "column {name} lies outside the file");
    }
    Ok(())
}

/// A row group of a file that was checked.
struct Group<'a> {
    file: &'a Arc<Guarded>,
    meta: &'a RowGroupMetaData,
}

impl Group<'_> {
    fn rows(&self) -> Result<usize, ParquetError> {
        Ok(usize::try_from(self.meta.num_rows())?)
    }

    /// The run and the round that its samples belong to.
    fn round(&self) -> Result<(u32, u32), ParquetError> {
        Ok((self.constant(0)?, self.constant(1)?))
    }

    fn samples(&self) -> Result<RoundSamples, ParquetError> {
        let (run, round) = self.round()?;
        let thread = self.column::<Int32Type>(2)?;
        let sequence = self.column::<Int64Type>(3)?;
        let size = self.column::<Int32Type>(4)?;
        let stamps = (5..10).map(|index| self.stamps(index)).collect::<Result<Vec<_>, _>>()?;
        let flags = self.column::<Int32Type>(10)?;
        let sample = |row: usize| {
            let thread = u32::try_from(thread[row]).map_err(|_| wrong("a thread below 0"))?;
            let sequence =
                u64::try_from(sequence[row]).map_err(|_| wrong("a sequence number below 0"))?;
            let size = u32::try_from(size[row]).map_err(|_| wrong("a size below 0"))?;
            let flags = Flags(flags[row].cast_unsigned());
            let stamps = std::array::from_fn(|kind| stamps[kind][row]);
            Ok(Sample::new(sequence, size, stamps, flags).of_thread(thread))
        };
        // All columns are as long as the group.
        let samples = (0..sequence.len()).map(sample).collect::<Result<_, ParquetError>>()?;
        Ok(RoundSamples { run, round, samples })
    }

    /// A column that has the same value in all rows, 0 or above.
    fn constant(&self, index: usize) -> Result<u32, ParquetError> {
        let values = self.column::<Int32Type>(index)?;
        let first = values.first().copied().unwrap_or(0);
        let is_one = values.iter().all(|&v| v == first);
        ensure!(is_one, wrong("a row group mixes rounds: expected one round in each"));
        u32::try_from(first).map_err(|_| wrong("a run, round or size below 0"))
    }

    /// A column of stamps: null becomes NaN.
    fn stamps(&self, index: usize) -> Result<Vec<f64>, ParquetError> {
        let mut levels = Vec::new();
        let mut values = self.values::<DoubleType>(index, Some(&mut levels))?.into_iter();
        let stamp = |level| if level == 1 { values.next().unwrap_or(f64::NAN) } else { f64::NAN };
        Ok(levels.into_iter().map(stamp).collect())
    }

    /// A column without nulls, as long as the group.
    fn column<T: DataType>(&self, index: usize) -> Result<Vec<T::T>, ParquetError> {
        self.values::<T>(index, None)
    }

    /// The values of a column, and whether (1) or not (0) each row has one, where it may have none.
    ///
    /// The library's own readers of files and row groups would bring those of all other types.
    fn values<T: DataType>(
        &self,
        index: usize,
        mut levels: Option<&mut Vec<i16>>,
    ) -> Result<Vec<T::T>, ParquetError> {
        let (rows, column) = (self.rows()?, self.meta.column(index));
        let pages = SerializedPageReader::new(Arc::clone(self.file), column, rows, None)?;
        let mut reader = ColumnReaderImpl::<T>::new(column.column_descr_ptr(), Box::new(pages));
        let mut values = Vec::new();
        let (records, read, _) =
            reader.read_records(rows, levels.as_deref_mut(), None, &mut values)?;
        let (said, present) = levels.map_or((rows, rows), |levels| {
            (levels.len(), levels.iter().filter(|level| **level == 1).count())
        });
        let is_whole =
            records == rows && said == rows && read == present && values.len() == present;
        ensure!(is_whole, wrong("a column is shorter than its row group"));
        Ok(values)
    }
}

fn wrong(why: &str) -> ParquetError {
    ParquetError::General(why.to_string())
}

/// The file, with a look at each page's header before the library unpacks the page by it.
struct Guarded {
    file: File,
    length: u64,
}

impl Length for Guarded {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Guarded {
    type T = BufReader<File>;

    /// Pages begin here: the library reads the file's tail and each page's header through this.
    /// [`check_group`] keeps columns out of the tail.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if start.checked_add(TAIL) == Some(self.length) {
            return Ok(BufReader::new(self.at(start)?));
        }
        let mut head = Vec::with_capacity(PAGE_HEAD);
        self.at(start)?.take(PAGE_HEAD as u64).read_to_end(&mut head)?;
        let strange = "a page is larger than any that wiregauge writes, or of another type";
        ensure!(page_allowed(&head), wrong(strange));
        Ok(BufReader::new(self.at(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        let end = start.checked_add(length as u64);
        let is_inside = end.is_some_and(|end| end <= self.length);
        ensure!(is_inside, wrong("a chunk lies outside the file"));
        let mut piece = vec![0; length];
        self.at(start)?.read_exact(&mut piece)?;
        Ok(piece.into())
    }
}

impl Guarded {
    fn at(&self, start: u64) -> io::Result<File> {
        let mut file = self.file.try_clone()?;
        file.seek(SeekFrom::Start(start))?;
        Ok(file)
    }
}

/// Bytes of a page's header up to its size when unpacked: two fields of a byte and a number each.
const PAGE_HEAD: usize = 12;

/// Whether a page's header (Thrift, compact) begins with a data page of an allowed size.
///
/// parquet.thrift, PageHeader: 1: type (DATA_PAGE is 0), 2: uncompressed_page_size. In the compact
/// protocol a field that follows its predecessor by one and is an i32 begins with 0x15.
fn page_allowed(head: &[u8]) -> bool {
    let Some([0x15, 0, 0x15, rest @ ..]) = head.get(..) else {
        return false;
    };
    // The number is a varint in zigzag form, as postcard's are.
    let size = postcard::take_from_bytes::<i32>(rest).map(|(size, _)| size);
    size.is_ok_and(|size| (0..=PAGE_LIMIT).contains(&size))
}
