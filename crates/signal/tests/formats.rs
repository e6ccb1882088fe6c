//! Samples in each format, and inputs that are refused.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use std::path::PathBuf;
use wiregauge_clock::{Ticks, Timebase};
use wiregauge_signal::file::{Keep, Writing};
use wiregauge_signal::format::{Format, binary};
use wiregauge_signal::source::{Shape, Source};
use wiregauge_signal::{
    Kind, METADATA, Sample, TimeOfDay, VALUE, Value, message_bytes, put_metadata,
};
use wiregauge_test_support::villas;

fn sample(values: Vec<Value>) -> Sample {
    Sample {
        sequence: 42,
        origin: TimeOfDay { seconds: 1_700_000_000, nanoseconds: 5_000_001 },
        received: Some(TimeOfDay { seconds: 1_700_000_000, nanoseconds: 5_012_345 }),
        values,
    }
}

fn written(format: Format, sample: &Sample) -> String {
    let mut out = Vec::new();
    format.head(sample.values.len(), &mut out);
    format.write(sample, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_are_as_villas_node_writes_them() {
    let sample = sample(vec![Value::Float(1.5), Value::Float(-0.25)]);
    assert_eq!(
        written(Format::Human, &sample),
        "# seconds.nanoseconds+offset(sequence)\tsignal0\tsignal1\n\
         1700000000.005000001+1.2344e-5(42)\t1.5\t-0.25\n"
    );
    assert_eq!(
        written(Format::Csv, &sample),
        "# secs,nsecs,offset,sequence,signal0,signal1\n\
         1700000000,005000001,0.000012344,42,1.5,-0.25\n"
    );
    assert_eq!(
        written(Format::Json, &sample),
        "{\"data\":[1.5,-0.25],\"sequence\":42,\"ts\":{\"origin\":[1700000000,5000001],\
         \"received\":[1700000000,5012345]}}\n"
    );
}

#[test]
fn what_villas_node_writes_is_read() {
    let human = "# seconds.nanoseconds(sequence)\tu\n1557149523.104000000(7)\t0.5\t-1e3\n";
    let read = villas::read(Format::Human, human.as_bytes(), Kind::Float).unwrap();
    assert_eq!((read.len(), read[0].sequence, read[0].received), (1, 7, None));
    assert_eq!(read[0].values, [Value::Float(0.5), Value::Float(-1000.0)]);
    let csv = "#secs,nsecs,offset,sequence,a\n1557149523,104000000,nan,7,3\n";
    let read = villas::read(Format::Csv, csv.as_bytes(), Kind::Integer).unwrap();
    assert_eq!(read[0].values, [Value::Integer(3)]);
    let framed = "1557149523.104000000(8)F\t1\n";
    let read = villas::read(Format::Human, framed.as_bytes(), Kind::Float).unwrap();
    assert_eq!((read[0].sequence, read[0].values.len()), (8, 1));
    let unknown = villas::read(Format::Csv, b"nan,nan,nan,nan,3\n", Kind::Integer).unwrap();
    assert_eq!((unknown[0].sequence, unknown[0].origin), (0, TimeOfDay::default()));
    let json = concat!(
        r#"{"ts": {"origin": [1, 2]}, "sequence": 5, "#,
        r#""data": [1, 1.5, true, {"real": 1.0, "imag": 2.0}]}"#
    );
    let read = villas::read(Format::Json, json.as_bytes(), Kind::Float).unwrap();
    let values =
        [Value::Integer(1), Value::Float(1.5), Value::Boolean(true), Value::Complex(1.0, 2.0)];
    assert_eq!(read[0].values, values);
}

#[test]
fn binary_is_big_endian_and_loses_what_32_bits_do_not_hold() {
    let mut bytes = Vec::new();
    Format::Binary.write(&sample(vec![Value::Float(1.0), Value::Float(0.1)]), &mut bytes);
    assert_eq!(bytes[..8], [0x20, 0, 0, 2, 0, 0, 0, 42]);
    assert_eq!(bytes[8..12], 1_700_000_000u32.to_be_bytes());
    assert_eq!(bytes[16..20], 1f32.to_be_bytes());
    let back = villas::read(Format::Binary, &bytes, Kind::Float).unwrap();
    assert_eq!(back[0].values, [Value::Float(1.0), Value::Float(f64::from(0.1f32))]);
    // A message that marks a stop carries none.
    bytes[0] = 0x28;
    assert_eq!(villas::read(Format::Binary, &bytes, Kind::Float), Ok(Vec::new()));
}

#[test]
fn what_is_no_sample_is_told_with_its_line() {
    let wrong = |format: Format, text: &str, kind| {
        villas::read(format, text.as_bytes(), kind).unwrap_err().to_string()
    };
    assert_eq!(wrong(Format::Csv, "1,2\n", Kind::Float), "line 1: it ends within a sample");
    let text = "1,2,nan,3,x\n";
    assert_eq!(wrong(Format::Csv, text, Kind::Float), "line 1: 'x' is no float");
    assert!(wrong(Format::Csv, "1,1000000000,nan,3\n", Kind::Float).contains("ns of a second"));
    assert!(wrong(Format::Human, "a(1)\t2\n", Kind::Float).contains("is not a time"));
    assert!(wrong(Format::Human, "1.0(x)\t2\n", Kind::Float).contains("not a sequence number"));
    assert!(wrong(Format::Json, "{}\n", Kind::Float).contains("list 'data' is missing"));
    let short = villas::read(Format::Binary, &[0x20, 0, 0, 1], Kind::Float);
    assert_eq!(short, Err("it ends within a sample".into()));
    let other = villas::read(Format::Binary, &[0x10; 16], Kind::Float).unwrap_err().to_string();
    assert_eq!(other, "version 1 of villas.binary; 2 is known");
}

fn any_value(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Float => prop::num::f64::NORMAL.prop_map(Value::Float).boxed(),
        Kind::Integer => any::<i64>().prop_map(Value::Integer).boxed(),
        Kind::Boolean => any::<bool>().prop_map(Value::Boolean).boxed(),
        Kind::Complex => (prop::num::f32::NORMAL, prop::num::f32::NORMAL)
            .prop_map(|(re, im)| Value::Complex(re, im))
            .boxed(),
    }
}

fn samples() -> impl Strategy<Value = (Kind, Vec<Sample>)> {
    prop::sample::select(Kind::ALL.to_vec()).prop_flat_map(|kind| {
        let values = prop::collection::vec(any_value(kind), 0..6);
        let one = (0u64..1 << 60, 0u64..4_000_000_000_000_000_000, 0u64..1_000_000_000, values);
        let one = one.prop_map(|(sequence, ns, delay, values)| Sample {
            sequence,
            origin: TimeOfDay::from_ns(ns),
            received: Some(TimeOfDay::from_ns(ns + delay)),
            values,
        });
        prop::collection::vec(one, 1..5).prop_map(move |samples| (kind, samples))
    })
}

proptest! {
    #[test]
    fn what_is_written_as_lines_is_read_back((kind, samples) in samples()) {
        for format in [Format::Human, Format::Csv, Format::Json] {
            // In JSON the form of a value shows its kind, and a whole float is one.
            let mut text = Vec::new();
            format.head(3, &mut text);
            samples.iter().for_each(|sample| format.write(sample, &mut text));
            let back = villas::read(format, &text, kind).unwrap();
            for (sample, back) in samples.iter().zip(&back) {
                prop_assert_eq!((sample.sequence, sample.origin), (back.sequence, back.origin));
                let [came, told] = [sample, back].map(|one| one.received.unwrap().as_ns());
                let apart = came.abs_diff(told);
                prop_assert!(apart <= 1, "{format:?} {apart}");
                prop_assert_eq!(&sample.values, &back.values);
            }
        }
    }

    #[test]
    fn a_message_becomes_a_datagram_and_one_again(
        sequence: u32, ns in 0u64..4_000_000_000_000_000_000,
        numbers in prop::collection::vec(any::<i32>(), 0..9)
    ) {
        let values: Vec<Value> =
            numbers.iter().map(|number| Value::Integer((*number).into())).collect();
        let mut message = vec![0; message_bytes(values.len())];
        let sequence = u64::from(sequence);
        put_metadata(&mut message, sequence, TimeOfDay::from_ns(ns));
        for (place, value) in message[METADATA..].chunks_exact_mut(VALUE).zip(&values) {
            place.copy_from_slice(&value.bits().to_le_bytes());
        }
        let mut datagram = vec![0; binary::datagram_bytes(values.len())];
        binary::encode(&message, Kind::Integer, &mut datagram);
        let sample = Sample { sequence, origin: TimeOfDay::from_ns(ns), received: None, values };
        let mut whole = Vec::new();
        Format::Binary.write(&sample, &mut whole);
        prop_assert_eq!(&datagram, &whole);

        let mut back = vec![1; message.len()];
        let origin = Some(TimeOfDay::from_ns(ns));
        prop_assert_eq!(binary::decode(&datagram, Kind::Integer, &mut back), origin);
        prop_assert_eq!(back, message);
        let mut longer = vec![0; message_bytes(numbers.len() + 1)];
        prop_assert_eq!(binary::decode(&datagram, Kind::Integer, &mut longer), None);
    }

    #[test]
    fn foreign_datagrams_are_messages_or_none(bytes: Vec<u8>) {
        let _ = binary::decode(&bytes, Kind::Float, &mut [0; 40]);
    }

    #[test]
    fn foreign_bytes_are_samples_or_a_sentence(bytes: Vec<u8>) {
        for format in Format::ALL {
            for &kind in Kind::ALL {
                let _ = villas::read(format, &bytes, kind);
            }
        }
    }
}

fn path(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("wiregauge-stream-{}-{name}", std::process::id()))
}

fn message(number: u64, values: usize) -> Vec<u8> {
    let mut message = vec![0; message_bytes(values)];
    put_metadata(&mut message, number, TimeOfDay { seconds: 5, nanoseconds: 7 });
    Source::new(Shape::default(), values, 1).fill(&mut message[METADATA..], number, 0.5);
    message
}

#[test]
fn what_a_loop_takes_is_in_the_file_with_the_time_at_which_it_came() {
    for format in Format::ALL {
        let path = path(format.name());
        let _ = std::fs::remove_file(&path);
        let keep = Keep { path: path.clone(), format, kind: Kind::Float };
        let time = Timebase::nanoseconds(Ticks(0));
        let (mut sink, writing) = Writing::start(&keep, 3, time, 5_000_000_000, || ()).unwrap();
        for number in 0..1000 {
            sink.take(&message(number, 3), Ticks(100 + number));
        }
        let kept = writing.end(sink);
        assert_eq!((kept.written, kept.left_out, kept.fault), (1000, 0, None));
        assert_eq!(kept.bytes, std::fs::metadata(&path).unwrap().len());
        let bytes = std::fs::read(&path).unwrap();
        let back = villas::read(format, &bytes, Kind::Float).unwrap();
        assert_eq!(back.len(), 1000);
        assert!(back.iter().enumerate().all(|(number, sample)| {
            sample.sequence == number as u64 && sample.values.len() == 3
        }));
        if format != Format::Binary {
            let late = back[999].received.unwrap().as_ns() as i64 - 5_000_001_099;
            assert!(late.abs() <= 1, "{format:?} {late}");
        }
        assert!(Writing::start(&keep, 3, time, 0, || ()).is_err(), "it is never overwritten");
        std::fs::remove_file(&path).unwrap();
    }
}
