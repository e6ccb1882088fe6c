//! The tables as Parquet: texts as dictionaries, so that what a run's rows have in common takes a
//! few bytes a page.

use super::rows::Row;
use super::table::{Cell, Column, Rows};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::sync::Arc;
use wiregauge_figures::record::samples::{column, created_by, system_error};

/// Writes rows, a row group at a time.
pub(super) struct Writer<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Rows,
}

impl<W: Write + Send> Writer<W> {
    pub fn new(columns: Rows, sink: W) -> io::Result<Writer<W>> {
        let properties = WriterProperties::builder()
            .set_created_by(created_by())
            .set_compression(Compression::SNAPPY)
            .build();
        let file = schema(columns)
            .and_then(|schema| SerializedFileWriter::new(sink, schema, properties.into()));
        Ok(Writer { file: file.map_err(system_error)?, columns })
    }

    /// Writes a row group.
    pub fn group(&mut self, rows: &[Row<'_>]) -> io::Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let columns = self.columns.columns();
        let mut group = self.file.next_row_group().map_err(system_error)?;
        columns.map(|column| &column.cell).try_for_each(|cell| {
            match cell {
                Cell::Text(cell) => {
                    let texts = rows.iter().map(|row| ByteArray::from(cell(row)));
                    required::<ByteArrayType>(&mut group, texts)
                }
                Cell::Flag(cell) => required::<BoolType>(&mut group, rows.iter().map(cell)),
                Cell::Whole(cell) => optional::<Int64Type>(&mut group, rows.iter().map(cell)),
                Cell::Number(cell) => {
                    let number = |row| Some(cell(row)).filter(|number| !number.is_nan());
                    optional::<DoubleType>(&mut group, rows.iter().map(number))
                }
            }
            .map_err(system_error)
        })?;
        group.close().map(drop).map_err(system_error)
    }

    /// Writes the end of the file and flushes it.
    pub fn finish(self) -> io::Result<()> {
        self.file.into_inner().map_err(system_error)?.flush()
    }
}

fn schema(columns: Rows) -> Result<Arc<Type>, ParquetError> {
    let field = |Column { name, cell }: &Column| {
        let (physical, logical, repetition) = match cell {
            Cell::Text(_) => {
                (Physical::BYTE_ARRAY, Some(LogicalType::String), Repetition::REQUIRED)
            }
            Cell::Flag(_) => (Physical::BOOLEAN, None, Repetition::REQUIRED),
            Cell::Whole(_) => (Physical::INT64, None, Repetition::OPTIONAL),
            Cell::Number(_) => (Physical::DOUBLE, None, Repetition::OPTIONAL),
        };
        let field = Type::primitive_type_builder(name, physical);
        let field = field.with_logical_type(logical).with_repetition(repetition);
        field.build().map(Arc::new)
    };
    let fields = columns.columns().map(field).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("row").with_fields(fields).build().map(Arc::new)
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn required<T: DataType>(
    group: &mut Group<'_, impl Write + Send>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    column::<T>(group, &values.collect::<Vec<_>>(), None)
}

fn optional<T: DataType>(
    group: &mut Group<'_, impl Write + Send>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut present = Vec::new();
    let levels: Vec<i16> = values
        .map(|value| {
            let level = i16::from(value.is_some());
            present.extend(value);
            level
        })
        .collect();
    column::<T>(group, &present, Some(&levels))
}
