//! Runs that end at any point, in any way: the file always has consecutive blocks, each once.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::client::access::home::Home;
use crate::client::access::profile::Profile;
use crate::client::charging::catch_up::book::Options;
use crate::client::charging::catch_up::cursor::CursorFile;
use crate::client::charging::catch_up::file::OutputFile;
use crate::client::charging::catch_up::plan::Start;
use crate::client::charging::catch_up::sink::Sink;
use crate::progress::Progress;

/// A directory for a cursor and a file.
struct Scene {
    directory: TempDir,
}

/// The service's state during one run.
struct Chain {
    latest: u64,
    /// It fails after this many responses.
    responses_left: u32,
    missing: Vec<u64>,
    requested: Vec<u64>,
}

/// How a run is interrupted, if at all.
#[derive(Debug, Clone)]
enum End {
    /// The service fails after this many responses: 402, 429, unreachable, or the user stops the run.
    Failure(u32),
    /// The process is killed after this many bytes of the next line: none, some, or all of it.
    Killed { blocks: u64, bytes: usize },
}

/// One run.
#[derive(Debug, Clone)]
struct Run {
    grown: u64,
    blocks_max: u64,
    end: End,
}

impl Scene {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("blocks.jsonl")
    }

    fn open(&self) -> Book<'static> {
        let home = Home::find(|_| Some(self.directory.path().join("home").into())).unwrap();
        let cursors = CursorFile::load(&Profile::load(&home, "default".parse().unwrap()).unwrap()).unwrap();
        let sink = Sink::File(OutputFile::open(&self.file(), true).unwrap());
        let service = "https://api.example.com".parse().unwrap();
        Book::open(cursors, &service, sink, Options::default()).unwrap()
    }

    fn content(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }
}

impl Chain {
    fn new(latest: u64) -> Self {
        Self { latest, responses_left: u32::MAX, missing: Vec::new(), requested: Vec::new() }
    }

    fn respond(&mut self) -> Result<(), Failure> {
        let failed = || Failure::NoCredits("the balance is used up".to_owned());
        self.responses_left = self.responses_left.checked_sub(1).ok_or_else(failed)?;
        Ok(())
    }
}

impl Feed for Chain {
    async fn latest(&mut self) -> Result<Block, Failure> {
        self.respond()?;
        Ok(block(self.latest))
    }

    async fn block(&mut self, number: BlockNumber) -> Result<FetchedBlock, Failure> {
        self.respond()?;
        self.requested.push(number.get());
        if self.missing.contains(&number.get()) {
            return Ok(FetchedBlock::Missing("It was pruned.".to_owned()));
        }
        Ok(FetchedBlock::Block(block(number.get())))
    }
}

/// Lines differ in length, like those of real blocks.
fn text(number: u64) -> String {
    let trades = "0.1,".repeat(usize::try_from(number % 5).unwrap());
    format!("{{\"block_number\":{number},\"prices\":[{trades}1]}}\n")
}

fn block(number: u64) -> Block {
    Block::read(text(number).as_bytes()).unwrap()
}

fn lines(first: u64, last: u64) -> String {
    (first..=last).map(text).collect()
}

fn rules(blocks_max: u64) -> Rules {
    Rules { blocks_max, skip_missing: false }
}

fn run(feed: &mut Chain, book: &mut Book<'_>, rules: Rules) -> (Result<(), Failure>, Tally) {
    let mut tally = Tally::new(Progress::none());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let result = runtime.block_on(walk(feed, book, rules, &mut tally));
    (result, tally)
}

#[test]
fn the_latest_block_is_fetched_once_and_the_others_by_their_numbers() {
    let scene = Scene::new();
    let (result, _) = run(&mut Chain::new(500), &mut scene.open(), rules(100));
    result.unwrap();
    assert_eq!(scene.content(), lines(500, 500));
    let mut chain = Chain::new(503);
    run(&mut chain, &mut scene.open(), rules(100)).0.unwrap();
    assert_eq!((scene.content(), chain.requested), (lines(500, 503), vec![501, 502]));
    let mut chain = Chain::new(503);
    let (result, tally) = run(&mut chain, &mut scene.open(), rules(100));
    result.unwrap();
    assert_eq!((scene.content(), chain.requested, tally.written()), (lines(500, 503), vec![], 0));
}

#[test]
fn a_missing_block_stops_the_run_unless_it_may_be_skipped() {
    let scene = Scene::new();
    run(&mut Chain::new(10), &mut scene.open(), rules(100)).0.unwrap();
    let gap = || Chain { missing: vec![12, 13], ..Chain::new(15) };
    let (result, tally) = run(&mut gap(), &mut scene.open(), rules(100));
    assert!(matches!(&result, Err(Failure::NotFound(text)) if text.contains("block 12: It was pruned.")), "{result:?}");
    assert_eq!((scene.content(), tally.written()), (lines(10, 11), 1));
    let skipping = Rules { skip_missing: true, ..rules(100) };
    run(&mut gap(), &mut scene.open(), skipping).0.unwrap();
    assert_eq!(scene.content(), lines(10, 11) + &lines(14, 15));
    assert_eq!(scene.open().start(), Start::After(BlockNumber::new(15)));
}

#[test]
fn service_behind_the_cursor_is_an_error() {
    let scene = Scene::new();
    run(&mut Chain::new(10), &mut scene.open(), rules(100)).0.unwrap();
    let mut chain = Chain::new(9);
    let (result, _) = run(&mut chain, &mut scene.open(), rules(100));
    assert!(matches!(result, Err(Failure::Conflict(_))));
    assert_eq!((scene.content(), chain.requested), (lines(10, 10), vec![]));
}

fn a_run() -> impl Strategy<Value = Run> {
    let end = prop_oneof![
        (0..12_u32).prop_map(End::Failure),
        (0..8_u64, 0..40_usize).prop_map(|(blocks, bytes)| End::Killed { blocks, bytes }),
    ];
    (0..20_u64, 1..=10_u64, end).prop_map(|(grown, blocks_max, end)| Run { grown, blocks_max, end })
}

/// Starts a run and ends it as specified.
fn perform(scene: &Scene, latest: u64, how: &Run) {
    let mut chain = Chain::new(latest);
    let mut book = scene.open();
    match how.end {
        End::Failure(responses_left) => {
            chain.responses_left = responses_left;
            let _ = run(&mut chain, &mut book, rules(how.blocks_max));
        }
        End::Killed { blocks, bytes } => {
            let count = blocks.min(how.blocks_max);
            if count > 0 {
                run(&mut chain, &mut book, rules(count)).0.unwrap();
            }
            let next = book.last_block().map_or(latest, |last| last.get() + 1);
            if next <= latest {
                let line = text(next);
                let Sink::File(file) = book.sink() else { panic!("it is a file") };
                file.write_at_end(&line.as_bytes()[..bytes.min(line.len())]).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn file_has_consecutive_blocks_once_however_runs_end(
        runs in prop::collection::vec(a_run(), 1..10),
    ) {
        let scene = Scene::new();
        let mut latest = 24_000_000;
        let mut first = None;
        for how in &runs {
            latest += how.grown;
            perform(&scene, latest, how);
            let book = scene.open();
            let last = book.last_block().map(BlockNumber::get);
            first = first.or_else(|| first_line(&scene));
            let expected = first.zip(last).map_or_else(String::new, |(first, last)| lines(first, last));
            prop_assert_eq!(scene.content(), expected);
            prop_assert!(last.is_none_or(|last| last <= latest));
        }
        while scene.open().last_block().map(BlockNumber::get) != Some(latest) {
            run(&mut Chain::new(latest), &mut scene.open(), rules(100)).0.unwrap();
        }
        prop_assert_eq!(scene.content(), lines(first.unwrap_or(latest), latest));
    }
}

/// The number in the first line, which depends on which run got far enough to write one.
fn first_line(scene: &Scene) -> Option<u64> {
    let content = scene.content();
    let line = content.lines().next()?;
    Some(Block::read(line.as_bytes()).unwrap().number.get())
}
