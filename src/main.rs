//! tmp
use std::sync::atomic::AtomicBool;
use wiregauge::{conduct::*, plan::*, units::*, transport::*};
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).map(String::as_str) == Some("agent") { std::process::exit(wiregauge::launch::agent::main().into()) }
    let t = TransportKind::from_name(&args[2]).unwrap();
    let wait = *Wait::ALL.iter().find(|w| w.name()==args[3]).unwrap();
    let pattern = match args[1].as_str() {"latency"=>Pattern::Latency,"oneway"=>Pattern::Oneway,_=>Pattern::Bandwidth};
    let size: u64 = args[4].parse().unwrap();
    let count: u64 = args[5].parse().unwrap();
    let rounds: u32 = args.get(6).map_or(3, |x| x.parse().unwrap());
    let case = Case{pattern,transport:t,wait,size:Bytes(size),bound:Bound{count:(count>0).then_some(count),time:(count==0).then_some(Span(300_000_000))},warmup:1000,pause:Span(0),burst:1,window:64,direction:Direction::Uni,schedule:Schedule::ClosedLoop,check:std::env::var("CHECK").is_ok(),loss_after:Span(100_000_000),timeout:Span(10_000_000_000),options:Options::default(),seed:1};
    let plan = Plan{name:"x".into(),cases:vec![case],rounds:Rounds{least:rounds,most:rounds,until:None},cpus:None,seed:1,threshold:Span(10_000)};
    let stop = AtomicBool::new(false);
    let stage = Stage{program: std::env::current_exe().unwrap(), command: args.clone(), clock: None, interrupted:&stop, unavailable: vec![]};
    let mut n = 0;
    let r = conduct(&plan,&stage,&mut |s| {n+=s.samples.len(); Ok(())}, &mut Silent).unwrap();
    println!("kept {n} complete {} {:?} instrument {:?} ", r.complete, r.faults, r.instrument);
    for n in &r.noise { println!("{n:?}") }
    for run in &r.runs { println!("{} {} {:?}", run.label, run.stopped, run.counts);
      for f in &run.figures { print!("{:?} n={} min {:.0} mean {:.0} max {:.0}:", f.metric, f.summary.count, f.summary.min.0, f.summary.mean, f.summary.max.0); for q in &f.summary.quantiles { print!(" p{}={:.0}[{:.0},{:.0}]", q.p, q.value.map_or(f64::NAN,|v|v.0), q.interval.map_or(f64::NAN,|v|v.low.0), q.interval.map_or(f64::NAN,|v|v.high.0)) } println!() }
      for f in &run.rates { println!("{:?} {:.0} {:?}", f.metric, f.rate.value, f.rate.interval) }
      for d in &run.doubts { println!("  doubt {}: {}", d.kind, d.text) } }
}
