//! The proof that nothing races: four processes of 64 connections each, and of one more whose decisions are joined,
//! hammer the same limits, one by one and in pairs, for each algorithm, over twenty windows. The scripts write down in which order they decided;
//! replayed in that order, the oracle says the same, decision for decision and in every field.

mod scenario;
mod worker;

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};

use tidegate_algorithms::{Headroom, Time};
use tidegate_store::Charging;
use tidegate_store_redis::client::{Client, ClientConfig, Command as Ask, Route};
use tidegate_store_redis::test_util::{PATIENCE, RedisServer};

use scenario::Scenario;

const PROCESSES: u64 = 4;

/// What one process says of one decision.
#[derive(Debug)]
struct Told {
    scenario: usize,
    cost: u64,
    now: Time,
    /// The answers, as they print themselves.
    answers: String,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "worker", url, first] => worker::run(url, first.parse().expect("a number")),
        // What `cargo test -- --list` asks.
        [_, .., "--list"] => println!("four_processes_decide_as_one: test"),
        _ => four_processes_decide_as_one(),
    }
}

fn four_processes_decide_as_one() {
    let server = RedisServer::start();
    let workers: Vec<Child> = (0..PROCESSES)
        .map(|number| start(&server.url(), number))
        .collect();
    let mut told = HashMap::new();
    for worker in workers {
        let output = worker.wait_with_output().expect("its words");
        assert!(output.status.success(), "a worker failed");
        let text = String::from_utf8(output.stdout).expect("text");
        told.extend(text.lines().map(read));
    }
    let order = order(&server);
    assert_eq!(order.len(), told.len(), "every decision is told once");
    let admitted = replay(&order, &told);
    println!(
        "{} decisions, {admitted} admitted, all as the oracle's",
        order.len()
    );
}

fn start(url: &str, number: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["worker", url, &number.to_string()]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    child.expect("another process")
}

/// A line of a worker: the decision's name, scenario, cost and time, and the answers.
fn read(line: &str) -> (u64, Told) {
    let mut words = line.splitn(5, ' ');
    let mut number = || -> u64 { words.next().expect("a word").parse().expect("a number") };
    let (name, scenario, cost, nanos) = (number(), number(), number(), number());
    let told = Told {
        scenario: usize::try_from(scenario).expect("few"),
        cost,
        now: Time::from_nanos(nanos),
        answers: words.next().expect("answers").to_owned(),
    };
    (name, told)
}

/// The names of all decisions, in the order in which Redis made them.
fn order(server: &RedisServer) -> Vec<u64> {
    let config = ClientConfig::from_url(&server.url()).expect("a URL");
    let client = Client::new(&config)
        .expect("no files")
        .with_timeout(PATIENCE);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    let ask = |command: &mut Ask<'_>| {
        command.arg("LRANGE").arg("race").arg("0").arg("-1");
    };
    let reply = runtime
        .block_on(client.call(Route::Any, ask))
        .expect("a list");
    let names = reply.array().expect("a list").map(|name| {
        let name = name.str().expect("a name");
        name.parse().expect("a number")
    });
    names.collect()
}

/// Has the oracle decide in the same order, at the same times.
fn replay(order: &[u64], told: &HashMap<u64, Told>) -> usize {
    let scenarios = Scenario::all();
    let mut models: Vec<_> = scenarios.iter().map(Scenario::model).collect();
    let mut admitted = 0;
    for (place, name) in order.iter().enumerate() {
        let told = told.get(name).expect("a decision that was told");
        let charges = scenarios[told.scenario].model_charges(told.cost);
        let model = &mut models[told.scenario];
        let (admission, decisions) =
            model.charge(&charges, Charging::AllOrNone, Headroom::Absent, told.now);
        let expected = format!("{admission:?} {decisions:?}");
        assert_eq!(told.answers, expected, "decision {place}: {told:?}");
        admitted += usize::from(expected.starts_with("Admitted"));
    }
    let time = |name| told.get(name).map(|told: &Told| told.now);
    let (first, last) = (order.first().and_then(time), order.last().and_then(time));
    let windows = first
        .zip(last)
        .map(|(first, last)| last.since(first).as_nanos() / u128::from(scenario::WINDOW_NANOS));
    assert!(
        windows >= Some(worker::WINDOWS.into()),
        "{windows:?} windows"
    );
    admitted
}
