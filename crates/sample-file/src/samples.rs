//! `samples.parquet`: one row a message, one or more row groups a round.
//!
//! Takes [`RoundSamples`] as the rounds end; gives a file that pyarrow, pandas, Polars and DuckDB
//! read without help. `docs/record.md` describes the columns.

use crate::error::RecordError;
use parquet::basic::{Compression, Encoding, Repetition, Type as Physical};
use parquet::data_type::{DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter, RowGroupMetaData,
};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wiregauge_host::TOOL_VERSION;
use wiregauge_sample::{RoundSamples, Sample};

/// What stands under `wiregauge.schema` in the file's key-value metadata.
pub const SCHEMA: &str = "wiregauge.samples";
/// The version of the columns that this build writes (`wiregauge.version`).
pub const VERSION: u32 = 3;
/// The columns, in order.
pub const COLUMNS: [&str; 11] = [
    "run",
    "round",
    "thread",
    "sequence",
    "size",
    "intended_ns",
    "submit_ns",
    "send_ns",
    "receive_ns",
    "complete_ns",
    "flags",
];

/// Most rows of a row group: a reader holds about 100 bytes a row while it decodes, so 100 MiB.
pub const GROUP_ROWS: usize = 1 << 20;
pub use wiregauge_plan::request::MAX_ROUND_ROWS;
/// Most row groups of a file: the footer describes each in about 1 KiB, and readers hold it whole.
pub const GROUPS: usize = 1 << 13;
/// What a row takes on disk at most: its plain size, 11 columns of 4 or 8 bytes and their levels,
/// for the estimate of a run's need. What it really takes is about a fifth of that.
pub const ROW_BYTES_AT_MOST: u64 = 78;

/// The columns as Parquet declares them.
pub fn schema() -> Result<Arc<Type>, ParquetError> {
    let column = |name: &str, physical, repetition| {
        let column = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        column.build().map(Arc::new)
    };
    let fields = COLUMNS.iter().map(|&name| match name {
        "sequence" => column(name, Physical::INT64, Repetition::REQUIRED),
        stamp if stamp.ends_with("_ns") => column(name, Physical::DOUBLE, Repetition::OPTIONAL),
        _ => column(name, Physical::INT32, Repetition::REQUIRED),
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("message").with_fields(fields).build().map(Arc::new)
}

/// What writes the Parquet files, for their metadata.
pub fn created_by() -> String {
    format!("wiregauge {TOOL_VERSION}")
}

/// Encodings by measured size (`tests/it/record.rs`, `a_million_rows_take_little_space`).
///
/// Whole numbers are constant or count up by one: delta-binary-packed makes almost nothing of
/// them. Stamps rise: byte-stream-split puts their equal high bytes side by side for snappy. A
/// million round trips with three stamps each take 12.3 MB so, 18.1 MB with plain stamps, 27.5 MB
/// with dictionaries. Without these a reader need not trust the size of one, either. Pages are of
/// the first version since every reader knows them.
pub fn properties(epoch: &str) -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(created_by())
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_key_value_metadata(Some(vec![
            KeyValue::new("wiregauge.schema".to_string(), SCHEMA.to_string()),
            KeyValue::new("wiregauge.version".to_string(), VERSION.to_string()),
            KeyValue::new("wiregauge.epoch".to_string(), epoch.to_string()),
        ]));
    for name in COLUMNS {
        let encoding = match name.ends_with("_ns") {
            true => Encoding::BYTE_STREAM_SPLIT,
            false => Encoding::DELTA_BINARY_PACKED,
        };
        builder = builder.set_column_encoding(ColumnPath::from(name), encoding);
    }
    builder.build()
}

/// Writes the samples of a run, round by round, to a file or any other sink.
pub struct SampleWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    path: PathBuf,
    /// Row groups that [`SampleWriter::save`] has described.
    saved: usize,
}

impl<W: Write + Send> SampleWriter<W> {
    /// Starts a file on `sink`; `path` is how sentences name it. `epoch` says in words what the
    /// stamps count from and goes into the file's metadata.
    pub fn new(sink: W, path: &Path, epoch: &str) -> Result<Self, RecordError> {
        let file = schema()
            .and_then(|schema| SerializedFileWriter::new(sink, schema, properties(epoch).into()))
            .map_err(|e| told(path, e))?;
        Ok(SampleWriter { file, path: path.to_path_buf(), saved: 0 })
    }

    /// Adds a round. One without samples leaves no row.
    pub fn append(&mut self, round: &RoundSamples) -> Result<(), RecordError> {
        let count = round.samples.len();
        within("the number of samples of a round", count as u64, MAX_ROUND_ROWS)?;
        let groups = self.file.flushed_row_groups().len() + count.div_ceil(GROUP_ROWS);
        within("the number of rounds", groups as u64, GROUPS as u64)?;
        let run = int32("the number of a run", round.run)?;
        let number = int32("the number of a round", round.round)?;
        for samples in round.samples.chunks(GROUP_ROWS) {
            if let Some(high) = samples.iter().map(|s| s.sequence).max() {
                within("the sequence number of a message", high, i64::MAX as u64)?;
            }
            if let Some(high) = samples.iter().map(|s| s.size).max() {
                let _ = int32("the size of a message in bytes", high)?;
            }
            self.group(run, number, samples).map_err(|e| told(&self.path, e))?;
        }
        Ok(())
    }

    /// Hands what was added to the sink; how many bytes it has now, and a footer of the row groups
    /// since the last time alone.
    pub fn save(&mut self) -> Result<(u64, Vec<u8>), RecordError> {
        self.file.flush().map_err(|e| RecordError::writing(&self.path, e))?;
        let groups = self.file.flushed_row_groups();
        let new = groups.get(self.saved..).unwrap_or_default();
        let footer = footer(new, self.file.properties()).map_err(|e| told(&self.path, e))?;
        self.saved = groups.len();
        Ok((self.file.bytes_written() as u64, footer))
    }

    /// The sink: all of the file but what came since the last [`SampleWriter::save`].
    pub fn sink(&mut self) -> &mut W {
        self.file.inner_mut()
    }

    /// Writes the footer and gives the sink back, flushed.
    pub fn finish(self) -> Result<W, RecordError> {
        self.file.into_inner().map_err(|e| told(&self.path, e))
    }

    fn group(&mut self, run: i32, round: i32, samples: &[Sample]) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        numbers(&mut group, samples, |_| run)?;
        numbers(&mut group, samples, |_| round)?;
        numbers(&mut group, samples, |s| s.thread.cast_signed())?;
        let sequence: Vec<i64> = samples.iter().map(|s| s.sequence as i64).collect();
        column::<Int64Type>(&mut group, &sequence, None)?;
        numbers(&mut group, samples, |s| s.size.cast_signed())?;
        for kind in 0..5 {
            stamps(&mut group, samples, |s| s.stamps()[kind])?;
        }
        numbers(&mut group, samples, |s| s.flags.0.cast_signed())?;
        group.close().map(|_| ())
    }
}

/// The footer of a file with these row groups.
pub fn footer(
    groups: &[RowGroupMetaData],
    properties: &WriterProperties,
) -> Result<Vec<u8>, ParquetError> {
    let file = FileMetaData::new(
        properties.writer_version().as_num(),
        groups.iter().map(RowGroupMetaData::num_rows).sum(),
        Some(properties.created_by().to_string()),
        properties.key_value_metadata().cloned(),
        Arc::new(SchemaDescriptor::new(schema()?)),
        None,
    );
    let mut bytes = Vec::new();
    let whole = ParquetMetaData::new(file, groups.to_vec());
    ParquetMetaDataWriter::new(&mut bytes, &whole).finish()?;
    Ok(bytes)
}

fn int32(what: &str, value: u32) -> Result<i32, RecordError> {
    within(what, value.into(), i32::MAX as u64)?;
    Ok(value.cast_signed())
}

fn within(what: &str, value: u64, limit: u64) -> Result<(), RecordError> {
    let fits = value <= limit;
    ensure!(fits, "{what} is {value}, more than samples.parquet holds: use at most {limit}");
    Ok(())
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

/// One column of whole numbers.
fn numbers<W: Write + Send>(
    group: &mut Group<'_, W>,
    samples: &[Sample],
    number: impl Fn(&Sample) -> i32,
) -> Result<(), ParquetError> {
    column::<Int32Type>(group, &samples.iter().map(number).collect::<Vec<i32>>(), None)
}

/// One column of stamps: NaN becomes null, every other value is kept bit by bit.
fn stamps<W: Write + Send>(
    group: &mut Group<'_, W>,
    samples: &[Sample],
    stamp: impl Fn(&Sample) -> f64,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = samples.iter().map(|s| i16::from(!stamp(s).is_nan())).collect();
    let values: Vec<f64> = samples.iter().map(stamp).filter(|v| !v.is_nan()).collect();
    column::<DoubleType>(group, &values, Some(&levels))
}

/// One column of a row group; of one that may be null the levels say where it is not (1).
pub fn column<T: DataType>(
    group: &mut Group<'_, impl Write + Send>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns than a row".to_string());
    let mut writer = group.next_column()?.ok_or_else(missing)?;
    writer.typed::<T>().write_batch(values, levels, None)?;
    writer.close()
}

/// The library's complaint as ours.
fn told(path: &Path, error: ParquetError) -> RecordError {
    RecordError::writing(path, system_error(error))
}

/// What the system said, where it was the system; else the library's complaint.
pub fn system_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(other) => io::Error::other(other.to_string()),
        },
        other => io::Error::other(other.to_string()),
    }
}
