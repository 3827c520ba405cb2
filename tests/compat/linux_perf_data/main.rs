// Prints what linux-perf-data reads in a capture: a line for each event with samples, EVENT SAMPLES PERIODS FRAMES, tabs between
// them. FRAMES are the words of all call chains, with marks.
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::BufReader;

use linux_perf_data::linux_perf_event_reader::EventRecord;
use linux_perf_data::{PerfFileReader, PerfFileRecord};

#[derive(Default)]
struct Sums {
    samples: u64,
    periods: u64,
    frames: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: linux_perf_data FILE")?;
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = PerfFileReader::parse_file(BufReader::new(File::open(path)?))?;
    let mut events: BTreeMap<usize, Sums> = BTreeMap::new();
    while let Some(record) = record_iter.next_record(&mut perf_file)? {
        if let PerfFileRecord::EventRecord { attr_index, record } = record {
            if let EventRecord::Sample(sample) = record.parse()? {
                let sums = events.entry(attr_index).or_default();
                sums.samples += 1;
                sums.periods += sample.period.unwrap_or(0);
                sums.frames += sample.callchain.map_or(0, |chain| chain.len());
            }
        }
    }
    for (index, sums) in events {
        let name = perf_file.event_attributes()[index].name().unwrap_or("");
        println!("{}\t{}\t{}\t{}", name, sums.samples, sums.periods, sums.frames);
    }
    Ok(())
}
