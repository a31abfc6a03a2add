use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::*;
use crate::client::access::home::Home;
use crate::client::access::profile::Profile;
use crate::client::charging::catch_up::cursor::Output;
use crate::client::charging::catch_up::sink::Stdout;

const N: fn(u64) -> BlockNumber = BlockNumber::new;

/// A profile and a directory for outputs.
struct Scene {
    directory: TempDir,
    service: ServiceUrl,
}

impl Scene {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), service: "https://api.example.com".parse().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn cursors(&self) -> CursorFile {
        let home = Home::find(|_| Some(self.path("home").into())).unwrap();
        CursorFile::load(&Profile::load(&home, "default".parse().unwrap()).unwrap()).unwrap()
    }

    fn open(&self, name: &str, options: Options) -> Result<Book<'static>, Failure> {
        let sink = Sink::File(OutputFile::open(&self.path(name), true).unwrap());
        Book::open(self.cursors(), &self.service, sink, options)
    }

    fn content(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn block(number: u64) -> Block {
    Block::read(format!("{{\"block_number\":{number}}}").as_bytes()).unwrap()
}

fn lines(numbers: std::ops::Range<u64>) -> String {
    numbers.map(|number| format!("{{\"block_number\":{number}}}\n")).collect()
}

fn conflict(result: Result<Book<'_>, Failure>) -> String {
    match result {
        Err(Failure::Conflict(text)) => text,
        Err(failure) => panic!("{failure:?}"),
        Ok(_) => panic!("no conflict"),
    }
}

const PLAIN: Options = Options { from: None, reset: false, new_output: false };
const NEW_OUTPUT: Options = Options { new_output: true, ..PLAIN };
const RESET: Options = Options { reset: true, ..PLAIN };

fn from(number: u64) -> Options {
    Options { from: Some(N(number)), ..PLAIN }
}

#[test]
fn run_resumes_where_the_last_one_ended() {
    let scene = Scene::new();
    let mut book = scene.open("a", from(5)).unwrap();
    assert_eq!(book.start(), Start::At(N(5)));
    book.write(&block(5)).unwrap();
    drop(book);
    let mut book = scene.open("a", from(900)).unwrap();
    assert_eq!(book.start(), Start::After(N(5)), "the cursor overrides --from");
    book.write(&block(6)).unwrap();
    book.skip(N(7)).unwrap();
    drop(book);
    let book = scene.open("a", PLAIN).unwrap();
    assert_eq!((book.start(), scene.content("a")), (Start::After(N(7)), lines(5..7)));
}

#[test]
fn start_block_is_remembered_until_a_block_is_written() {
    let scene = Scene::new();
    drop(scene.open("a", from(5)).unwrap());
    assert_eq!(scene.open("a", PLAIN).unwrap().start(), Start::At(N(5)));
    assert_eq!(scene.open("b", PLAIN).unwrap().start(), Start::At(N(5)));
    assert_eq!(scene.open("b", from(4)).unwrap().start(), Start::At(N(4)));
}

#[test]
fn file_of_unknown_content_needs_a_start_block() {
    let scene = Scene::new();
    fs::write(scene.path("a"), lines(1..3)).unwrap();
    assert!(conflict(scene.open("a", PLAIN)).contains("--from"));
    assert_eq!(scene.cursors().of(&scene.service), None, "a refused run is not remembered");
    let mut book = scene.open("a", from(3)).unwrap();
    book.write(&block(3)).unwrap();
    drop(book);
    assert_eq!(scene.content("a"), lines(1..4));
    fs::write(scene.path("torn"), "{\"block").unwrap();
    assert!(conflict(scene.open("torn", Options { reset: true, ..from(3) })).contains("incomplete"));
}

#[test]
fn other_output_is_rejected_unless_requested_and_new() {
    let scene = Scene::new();
    let mut book = scene.open("a", from(1)).unwrap();
    book.write(&block(1)).unwrap();
    drop(book);
    assert!(conflict(scene.open("b", PLAIN)).contains("block 1"));
    fs::write(scene.path("c"), lines(1..2)).unwrap();
    assert!(conflict(scene.open("c", NEW_OUTPUT)).contains("not empty"));
    // A line that was not counted is written again in the new file, so it must not stay in the old one.
    fs::write(scene.path("a"), lines(1..3)).unwrap();
    let mut book = scene.open("b", NEW_OUTPUT).unwrap();
    assert_eq!(book.start(), Start::After(N(1)));
    book.write(&block(2)).unwrap();
    drop(book);
    assert_eq!((scene.content("a"), scene.content("b")), (lines(1..2), lines(2..3)));
    // Repeating it changes nothing.
    assert_eq!(scene.open("b", NEW_OUTPUT).unwrap().start(), Start::After(N(2)));
    assert!(conflict(scene.open("a", PLAIN)).contains("block 2"));
}

#[test]
fn missing_output_is_replaced_only_with_new_output() {
    let scene = Scene::new();
    let mut book = scene.open("a", from(1)).unwrap();
    book.write(&block(1)).unwrap();
    drop(book);
    fs::rename(scene.path("a"), scene.path("a.1")).unwrap();
    assert!(conflict(scene.open("a", PLAIN)).contains("--new-output"));
    let mut book = scene.open("a", NEW_OUTPUT).unwrap();
    book.write(&block(2)).unwrap();
    drop(book);
    assert_eq!((scene.content("a.1"), scene.content("a")), (lines(1..2), lines(2..3)));
    assert_eq!(scene.open("a", PLAIN).unwrap().start(), Start::After(N(2)));
}

#[test]
fn reset_cursor_starts_anew() {
    let scene = Scene::new();
    let mut book = scene.open("a", from(1)).unwrap();
    book.write(&block(1)).unwrap();
    drop(book);
    assert!(conflict(scene.open("a", RESET)).contains("--from"));
    assert_eq!(scene.open("a", PLAIN).unwrap().start(), Start::After(N(1)), "a refused reset changes nothing");
    // The line of an interrupted run does not count as part of the file.
    fs::write(scene.path("a"), lines(1..2) + "{\"block_nu").unwrap();
    assert_eq!(scene.open("a", Options { reset: true, ..from(2) }).unwrap().start(), Start::At(N(2)));
    assert_eq!(scene.content("a"), lines(1..2));
    assert_eq!(scene.open("b", RESET).unwrap().start(), Start::Latest);
}

#[test]
fn stdout_is_an_output_like_others() {
    let scene = Scene::new();
    let mut out = Vec::new();
    let mut open = |options: Options, write: Option<u64>| {
        let sink = Sink::Stdout(Stdout::new(&mut out));
        let mut book = Book::open(scene.cursors(), &scene.service, sink, options)?;
        let start = book.start();
        write.into_iter().for_each(|number| book.write(&block(number)).unwrap());
        Ok::<_, Failure>(start)
    };
    assert_eq!(open(from(1), Some(1)).unwrap(), Start::At(N(1)));
    assert_eq!(open(PLAIN, Some(2)).unwrap(), Start::After(N(1)));
    assert!(conflict(scene.open("a", PLAIN)).contains("standard output"));
    scene.open("a", NEW_OUTPUT).unwrap().write(&block(3)).unwrap();
    assert!(matches!(open(PLAIN, None), Err(Failure::Conflict(_))));
    assert_eq!(open(NEW_OUTPUT, Some(4)).unwrap(), Start::After(N(3)));
    assert_eq!(String::from_utf8(out).unwrap(), lines(1..3) + &lines(4..5));
    assert_eq!(scene.content("a"), lines(3..4));
}

#[test]
fn unwritable_cursor_is_found_before_any_request() {
    let scene = Scene::new();
    let profile = scene.path("home/profiles/default");
    fs::create_dir_all(profile.parent().unwrap()).unwrap();
    let cursors = scene.cursors();
    fs::write(&profile, "in the way").unwrap();
    let sink = Sink::File(OutputFile::open(&scene.path("a"), true).unwrap());
    assert!(matches!(Book::open(cursors, &scene.service, sink, PLAIN), Err(Failure::Failed(_))));
    assert!(matches!(sink_output(&scene.path("a")), Output::File(written) if written.length == 0));
}

fn sink_output(path: &Path) -> Output {
    Sink::File(OutputFile::open(path, false).unwrap()).output()
}
