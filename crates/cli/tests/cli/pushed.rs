//! Rules that are pushed to a real Redis, and servers that have them from there.

use std::fs;
use std::path::PathBuf;
use std::thread;

use tidegate_store_redis::book::{Draft, Expected, Pushed, RuleBook};
use tidegate_store_redis::client::ClientConfig;
use tidegate_store_redis::test_util::{RedisServer, ServerOptions};

use crate::program::{Run, command, run, scratch};
use crate::server::{Server, USER, number, value};

const RELOADED: &str = "reloaded the rules: 1 domain, 1 rule, 1 limit";
const KEPT: &str = "rules reload failed; the previous rules stay in force: ";

/// A Redis, files to push to it, and servers that have their rules from it.
struct Stage {
    redis: RedisServer,
    folder: PathBuf,
    url: String,
}

// === impl Stage ===

impl Stage {
    fn new(name: &str) -> Self {
        let redis = RedisServer::start();
        Self {
            url: redis.url(),
            redis,
            folder: scratch(name),
        }
    }

    /// A file of rules that let each user in so often a year.
    fn rules(&self, limit: &str) -> String {
        let rule =
            format!("{{key: user_id, rate_limit: {{unit: year, requests_per_unit: {limit}}}}}");
        let path = self.folder.join("rules.yaml");
        fs::write(&path, format!("domain: shop\ndescriptors: [{rule}]\n")).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn push(&self, limit: &str) -> Run {
        self.push_with(limit, &[])
    }

    fn push_with(&self, limit: &str, more: &[&str]) -> Run {
        let path = self.rules(limit);
        self.rules_command("push", &[&[path.as_str()], more].concat())
    }

    fn rules_command(&self, name: &str, more: &[&str]) -> Run {
        let args = [&["rules", name, "--to", &self.url], more].concat();
        run(&args)
    }

    /// A server, with a cache of its own for each `name`.
    fn serve(&self, name: &str) -> Server {
        Server::start(&["--rules", &self.url, "--rules-cache", &self.cache(name)])
    }

    fn cache(&self, name: &str) -> String {
        let path = self.folder.join(name).join("cache");
        path.to_str().unwrap().to_owned()
    }

    /// Puts bytes in Redis that no `tidegate rules push` would put there.
    fn push_unchecked(&self, body: &str) -> u64 {
        let config = ClientConfig::from_url(&self.url).unwrap();
        let draft = Draft {
            body: body.as_bytes(),
            about: "by hand",
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let pushed = runtime.block_on(async {
            let book = RuleBook::new(&config, "default").unwrap();
            book.push(draft, Expected::Any).await.unwrap()
        });
        match pushed {
            Pushed::New { number, .. } => number,
            other => panic!("{other:?}"),
        }
    }
}

/// The limit that a user is told.
fn limit(server: &Server) -> Option<u64> {
    number(&server.ask(USER), "x-ratelimit-limit")
}

#[track_caller]
fn succeeded(run: &Run) {
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_push_reaches_every_server() {
    let stage = Stage::new("pushed");
    succeeded(&stage.push("1"));
    let mut servers = [stage.serve("a"), stage.serve("b")];
    for server in &servers {
        assert!(value(&server.banner, "rules").contains("version 1 of "));
        assert_eq!(limit(server), Some(1));
    }
    let pushed = stage.push("2");
    succeeded(&pushed);
    let expected = format!(
        "pushed version 2 to {} (before it: version 1)\n  changed rules.yaml\n",
        stage.url
    );
    assert!(pushed.stdout.contains(&expected), "{pushed:?}");
    for server in &mut servers {
        let line = server.next_line(RELOADED);
        assert!(line.contains("version 2 of "), "{line}");
        assert_eq!(limit(server), Some(2));
        let metrics = server.operate("GET /metrics", "");
        assert!(
            metrics.contains("\ntidegate_rules_version 2\n"),
            "{metrics}"
        );
        let told = server.operate("GET /api/v1/reload", "");
        assert!(told.contains("version 2 of "), "{told}");
    }
}

#[test]
fn a_version_without_a_notice_is_found_all_the_same() {
    let stage = Stage::new("no_notice");
    succeeded(&stage.push("1"));
    let newest = "tg1:{rules:default}:newest";
    let first = stage.redis.must(&["GET", newest]);
    let first = str::from_utf8(first.text().unwrap().unwrap()).unwrap();
    succeeded(&stage.push("2"));
    let mut server = stage.serve("a");
    assert_eq!(limit(&server), Some(2));
    stage.redis.must(&["SET", newest, first]);
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(1));
}

#[test]
fn a_push_is_found_after_the_connection_for_notices_was_lost() {
    let stage = Stage::new("lost_notice");
    succeeded(&stage.push("1"));
    let mut server = stage.serve("a");
    for (written, told) in [("2", 2), ("3", 3)] {
        let kill = ["CLIENT", "KILL", "SKIPME", "yes", "TYPE"];
        for connections in ["pubsub", "normal"] {
            stage.redis.must(&[&kill[..], &[connections]].concat());
        }
        succeeded(&stage.push(written));
        server.next_line(RELOADED);
        assert_eq!(limit(&server), Some(told));
    }
}

#[test]
fn a_server_starts_without_redis_and_finds_it_later() {
    let stage = Stage::new("cached");
    succeeded(&stage.push("1"));
    assert!(stage.serve("a").stop("-TERM").success());
    stage.redis.kill();
    let mut server = stage.serve("a");
    let told = value(&server.banner, "rules");
    assert!(told.contains("version 1 of "), "{told}");
    assert!(told.ends_with(" old)"), "{told}");
    let line = server.next_line("; starting with redis://");
    assert!(
        line.contains("cannot reach the rules in redis://"),
        "{line}"
    );
    assert!(line.contains(&stage.cache("a")), "{line}");
    assert_eq!(limit(&server), Some(1));
    // It comes back with nothing in it, and that replaces nothing.
    stage.redis.restart();
    let line = server.next_line(KEPT);
    assert!(line.contains("there are no rules in redis://"), "{line}");
    assert_eq!(limit(&server), Some(1));
    // The numbers begin anew, and the version is known to be another by its digest.
    succeeded(&stage.push("2"));
    let line = server.next_line(RELOADED);
    assert!(line.contains("version 1 of "), "{line}");
    assert_eq!(limit(&server), Some(2));
}

#[test]
fn a_copy_is_kept_in_the_state_folder_unless_told_otherwise() {
    let stage = Stage::new("state_folder");
    let (state, none) = (stage.folder.join("state"), stage.folder.join("none"));
    succeeded(&stage.push("1"));
    let start = |folder: &PathBuf, more: &[&str]| {
        let args = [&["--rules", stage.url.as_str()], more].concat();
        Server::start_with(&args, &[("STATE_DIRECTORY", folder.to_str().unwrap())])
    };
    drop(start(&state, &[]));
    drop(start(&none, &["--rules-cache", "off"]));
    assert!(!none.exists());
    stage.redis.kill();
    assert_eq!(limit(&start(&state, &[])), Some(1));
}

#[test]
fn a_server_that_loses_redis_says_so_once_and_goes_on() {
    let stage = Stage::new("lost");
    succeeded(&stage.push("1"));
    let mut server = stage.serve("a");
    stage.redis.kill();
    server.next_line("cannot look for new rules in redis://");
    assert_eq!(limit(&server), Some(1));
    stage.redis.restart();
    server.next_line("can look for new rules in redis://");
}

#[test]
fn without_redis_and_without_a_copy_there_is_no_start() {
    let stage = Stage::new("nothing");
    let serve = || {
        run(&[
            "serve",
            "--rules",
            &stage.url,
            "--rules-cache",
            &stage.cache("a"),
        ])
    };
    let empty = serve();
    assert_eq!(empty.code, Some(2), "{empty:?}");
    let expected = format!(
        "error: there are no rules in {0}; push some with `tidegate rules push PATH --to {0}`\n",
        stage.url
    );
    assert!(empty.stderr.ends_with(&expected), "{empty:?}");
    stage.redis.kill();
    let gone = serve();
    assert_eq!(gone.code, Some(2), "{gone:?}");
    let expected = format!("error: cannot reach the rules in {}: ", stage.url);
    assert!(gone.stderr.contains(&expected), "{gone:?}");
    assert!(
        gone.stderr.contains("is it there, and its URL right?"),
        "{gone:?}"
    );
}

#[test]
fn a_copy_that_is_damaged_is_not_believed() {
    let stage = Stage::new("damaged");
    succeeded(&stage.push("1"));
    drop(stage.serve("a"));
    let path = stage.cache("a");
    let kept = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        kept.replace("requests_per_unit: 1", "requests_per_unit: 9"),
    )
    .unwrap();
    stage.redis.kill();
    let refused = run(&["serve", "--rules", &stage.url, "--rules-cache", &path]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("it is damaged"), "{refused:?}");
}

#[test]
fn rules_with_faults_are_not_pushed() {
    let stage = Stage::new("faults");
    let refused = stage.push("many");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told = "error[bad-value]: `requests_per_unit` takes a whole number, not `many`";
    assert!(refused.stdout.contains(told), "{refused:?}");
    assert!(refused.stdout.ends_with("not valid: 1 file, 1 fault\n"));
    let told = format!(
        "error: nothing was pushed to {}: mend the faults",
        stage.url
    );
    assert!(refused.stderr.starts_with(&told), "{refused:?}");
    assert_eq!(stage.redis.must(&["DBSIZE"]).integer(), Ok(0));
}

/// Servers whose counters are in Redis would all refuse them.
#[test]
fn rules_are_checked_for_counters_in_redis_unless_it_is_said_where_they_are() {
    let stage = Stage::new("unfit");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/fixtures/unfit.yaml");
    let refused = stage.rules_command("push", &[path]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stdout.contains("error[unfit]"), "{refused:?}");
    succeeded(&stage.rules_command("push", &[path, "--store", "memory"]));
}

#[test]
fn the_password_of_the_store_is_for_the_rules_in_the_same_redis_too() {
    let redis = RedisServer::start_with(ServerOptions {
        settings: vec![vec!["requirepass".to_owned(), "hunter2".to_owned()]],
        ..ServerOptions::default()
    });
    let folder = scratch("pushed_password");
    let (file, rules) = (folder.join("password"), folder.join("rules.yaml"));
    fs::write(&file, "hunter2\n").unwrap();
    let rule = "{key: user_id, rate_limit: {unit: year, requests_per_unit: 7}}";
    fs::write(&rules, format!("domain: shop\ndescriptors: [{rule}]\n")).unwrap();
    let url = format!("redis://{}", redis.address());
    let variables = [
        ("TIDEGATE_STORE", url.as_str()),
        ("TIDEGATE_STORE_PASSWORD_FILE", file.to_str().unwrap()),
        ("TIDEGATE_STORE_TIMEOUT", "30s"),
        ("TIDEGATE_STORE_MIN_TIMEOUT", "30s"),
    ];
    let push = ["rules", "push", rules.to_str().unwrap(), "--to", &url];
    let pushed = command(&push).envs(variables).output().unwrap();
    assert!(pushed.status.success(), "{pushed:?}");
    let args = ["--rules", &url, "--rules-cache", "off"];
    assert_eq!(limit(&Server::start_with(&args, &variables)), Some(7));
    let other = variables.map(|(name, value)| match name {
        "TIDEGATE_STORE" => (name, "redis://127.0.0.1:1"),
        _ => (name, value),
    });
    let refused = command(&push).envs(other).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let told = String::from_utf8(refused.stderr).unwrap();
    assert!(told.contains("NOAUTH"), "{told}");
    assert!(told.contains("; a password is written redis://"), "{told}");
}

#[test]
fn a_bad_version_replaces_nothing_and_is_told_once() {
    let stage = Stage::new("bad_version");
    succeeded(&stage.push("1"));
    let mut server = stage.serve("a");
    stage.push_unchecked("domain: shop");
    let line = server.next_line(KEPT);
    assert!(line.contains("version 2 in redis://"), "{line}");
    assert!(
        line.contains("it is not what `tidegate rules push` writes"),
        "{line}"
    );
    stage.push_unchecked(
        r#"{"format":1,"merge_domains":false,"files":[{"name":"x.yaml","text":"domains: x"}]}"#,
    );
    server.next_line(KEPT);
    server.next_line("v3:x.yaml:1");
    let newest = "tg1:{rules:default}:newest";
    stage.redis.must(&["SET", newest, "nonsense"]);
    let line = server.next_line(KEPT);
    assert!(line.contains("what no push has written"), "{line}");
    assert_eq!(limit(&server), Some(1));
    let metrics = server.operate("GET /metrics", "");
    let failures = r#"tidegate_reloads_total{result="failure"} 3"#;
    assert!(metrics.contains(failures), "{metrics}");
    assert!(
        server
            .operate("GET /api/v1/reload", "")
            .contains("what no push has written")
    );
    // A newcomer takes the newest that is good.
    let other = stage.serve("b");
    assert!(value(&other.banner, "rules").contains("version 1 of "));
    // What was bad does not come back, what was good does, and has a number of its own.
    let refused = stage.rules_command("rollback", &["3"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let told =
        "this release finds the faults above in version 3; to mend them, `tidegate rules show 3";
    assert!(refused.stderr.contains(told), "{refused:?}");
    let refused = stage.rules_command("rollback", &["2"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(
        refused.stderr.contains("version 2 in redis://"),
        "{refused:?}"
    );
    let back = stage.rules_command("rollback", &["1"]);
    assert!(back.stdout.contains("pushed version 4 to "), "{back:?}");
    let line = server.next_line("reloaded");
    assert!(line.contains("version 4 of "), "{line}");
    succeeded(&stage.push("5"));
    let line = server.next_line("reloaded");
    assert!(line.contains(RELOADED), "{line}");
    assert_eq!(limit(&server), Some(5));
}

#[test]
fn the_history_is_told_and_gone_back_in() {
    let stage = Stage::new("history");
    for (limit, message) in [("1", "first"), ("2", "second"), ("3", "a\nmistake")] {
        succeeded(&stage.push_with(limit, &["--author", "ann", "--message", message]));
    }
    let same = stage.push("3");
    succeeded(&same);
    assert!(
        same.stdout.contains("nothing to push: version 3 in "),
        "{same:?}"
    );
    let mut server = stage.serve("a");
    let back = stage.rules_command("rollback", &["--author", "bob"]);
    succeeded(&back);
    assert!(back.stdout.contains("pushed version 4 to "), "{back:?}");
    assert!(back.stdout.contains("  changed rules.yaml\n"), "{back:?}");
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(2));
    // Whoever goes back twice goes further back.
    succeeded(&stage.rules_command("rollback", &["--author", "bob"]));
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(1));
    let nowhere = stage.rules_command("rollback", &[]);
    assert_eq!(nowhere.code, Some(1), "{nowhere:?}");
    succeeded(&stage.rules_command("rollback", &["2", "-m", "the best"]));
    let shown = stage.rules_command("show", &[]);
    assert!(shown.stdout.contains("requests_per_unit: 2"), "{shown:?}");
    let shown = stage.rules_command("show", &["3"]);
    assert_eq!(shown.stdout, fs::read_to_string(stage.rules("3")).unwrap());
    let missing = stage.rules_command("show", &["77"]);
    assert!(
        missing.stderr.contains("`tidegate rules history` lists"),
        "{missing:?}"
    );
    check_history(&stage);
}

fn check_history(stage: &Stage) {
    let history = stage.rules_command("history", &[]);
    let lines: Vec<Vec<&str>> = history
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(lines.len(), 7, "{history:?}");
    assert_eq!(lines[1][..2], ["*", "6"]);
    assert_eq!(lines[2][5..], ["back", "to", "version", "1"]);
    assert_eq!(lines[4][0], "3");
    assert_eq!(lines[4][2..4], ["ann", "1"]);
    assert_eq!(lines[4][5..], ["a", "mistake"]);
    let json = stage.rules_command("history", &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["newest"], true);
    assert_eq!(json[0]["restores"], 2);
    assert_eq!(json[3]["version"], 3);
    assert_eq!(json[3]["author"], "ann");
    assert_eq!(json[0]["sha256"], json[4]["sha256"]);
}

#[test]
fn of_several_who_push_at_once_only_one_overwrites_what_it_saw() {
    let stage = Stage::new("at_once");
    succeeded(&stage.push_with("1", &["--expect", "0"]));
    let paths: Vec<String> = (2..8)
        .map(|limit| {
            let path = stage.folder.join(format!("{limit}.yaml"));
            fs::copy(stage.rules(&limit.to_string()), &path).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let runs: Vec<Run> = thread::scope(|scope| {
        let push = |path: &str| stage.rules_command("push", &["--expect", "1", path]);
        let pushing: Vec<_> = paths
            .iter()
            .map(|path| scope.spawn(move || push(path)))
            .collect();
        pushing.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let (pushed, overtaken): (Vec<_>, Vec<_>) = runs.iter().partition(|run| run.code == Some(0));
    assert_eq!(pushed.len(), 1, "{runs:?}");
    for run in overtaken {
        assert_eq!(run.code, Some(1), "{run:?}");
        let told = "error: not pushed: version 1 was expected, but version 2 is the newest";
        assert!(run.stderr.starts_with(told), "{run:?}");
    }
}

#[test]
fn of_several_who_push_at_once_each_names_its_own_predecessor() {
    let stage = Stage::new("predecessors");
    succeeded(&stage.push("1"));
    let paths: Vec<String> = (2..12)
        .map(|limit| {
            let path = stage.folder.join(format!("{limit}.yaml"));
            fs::copy(stage.rules(&limit.to_string()), &path).unwrap();
            path.to_str().unwrap().to_owned()
        })
        .collect();
    let runs: Vec<Run> = thread::scope(|scope| {
        let push = |path: &str| stage.rules_command("push", &[path]);
        let pushing: Vec<_> = paths
            .iter()
            .map(|path| scope.spawn(move || push(path)))
            .collect();
        pushing.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let number_of = |run: &Run| -> u64 {
        let (_, told) = run.stdout.split_once("pushed version ").unwrap();
        told.split_once(' ').unwrap().0.parse().unwrap()
    };
    // Each version has a file of another name, so the difference to its predecessor names both.
    let mut files: Vec<(u64, String)> = vec![(1, "rules.yaml".to_owned())];
    let numbered = (2..12).zip(&runs);
    files.extend(numbered.map(|(limit, run)| (number_of(run), format!("{limit}.yaml"))));
    files.sort();
    let numbers: Vec<u64> = files.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, (1..12).collect::<Vec<u64>>());
    for run in &runs {
        let number = number_of(run);
        let (before, file) = &files[usize::try_from(number).unwrap() - 2];
        let predecessor = format!(" (before it: version {before})\n");
        assert!(run.stdout.contains(&predecessor), "{run:?}");
        let removed = format!("  removed {file} (");
        assert!(run.stdout.contains(&removed), "{run:?}");
    }
}

#[test]
fn a_rollback_says_that_the_newest_version_is_damaged() {
    let stage = Stage::new("damaged_newest");
    for limit in ["1", "2"] {
        succeeded(&stage.push(limit));
    }
    for (number, damage) in [(3, "nonsense"), (4, "2 abc"), (5, "99999999999999999 abc")] {
        stage
            .redis
            .must(&["SET", "tg1:{rules:default}:newest", damage]);
        let back = stage.rules_command("rollback", &[]);
        succeeded(&back);
        let told = "warning: the key of the newest version is damaged: ";
        assert!(back.stderr.starts_with(told), "{back:?}");
        let expected = format!("pushed version {number} to {}\n", stage.url);
        assert!(back.stdout.contains(&expected), "{back:?}");
        let shown = stage.rules_command("show", &[]);
        assert!(shown.stdout.contains("requests_per_unit: 2"), "{shown:?}");
    }
}

#[test]
fn a_folder_is_one_version() {
    let stage = Stage::new("folder");
    let folder = stage.folder.join("rules");
    fs::create_dir(&folder).unwrap();
    for name in ["a", "b"] {
        let text = fs::read_to_string(stage.rules("1")).unwrap();
        fs::write(folder.join(name).with_extension("yaml"), text).unwrap();
    }
    let path = folder.to_str().unwrap();
    // They share a domain, and that has to be wanted.
    assert_eq!(stage.rules_command("push", &[path]).code, Some(1));
    fs::write(
        folder.join("b.yaml"),
        "domain: shop\ndescriptors: [{key: ip}]\n",
    )
    .unwrap();
    succeeded(&stage.rules_command("push", &[path, "--merge-domains"]));
    let server = stage.serve("a");
    assert!(value(&server.banner, "loaded").starts_with("1 domain, "));
    let shown = stage.rules_command("show", &[]);
    assert!(
        shown.stdout.starts_with("# --- a.yaml\ndomain: shop\n"),
        "{shown:?}"
    );
    assert!(shown.stdout.contains("# --- b.yaml\n"), "{shown:?}");
    let copy = stage.folder.join("copy");
    let into = ["--into", copy.to_str().unwrap()];
    succeeded(&stage.rules_command("show", &into));
    for name in ["a.yaml", "b.yaml"] {
        let read = |folder: &PathBuf| fs::read(folder.join(name)).unwrap();
        assert_eq!(read(&copy), read(&folder));
    }
    let taken = stage.rules_command("show", &into);
    assert_eq!(taken.code, Some(1), "{taken:?}");
    assert!(taken.stderr.contains("a.yaml: File exists"), "{taken:?}");
}

#[test]
fn sets_of_rules_of_other_names_are_apart() {
    let stage = Stage::new("named");
    succeeded(&stage.push_with("1", &["--rules-name", "staging"]));
    succeeded(&stage.push("2"));
    let cache = stage.cache("staging");
    let args = [
        "--rules",
        &stage.url,
        "--rules-name",
        "staging",
        "--rules-cache",
        &cache,
    ];
    let mut server = Server::start(&args);
    assert_eq!(limit(&server), Some(1));
    succeeded(&stage.push_with("3", &["--rules-name", "staging"]));
    server.next_line(RELOADED);
    assert_eq!(limit(&server), Some(3));
}

#[test]
fn the_newest_rules_are_explained() {
    let stage = Stage::new("explained");
    let explain = |more: &[&str]| {
        let args = ["explain", "--rules", &stage.url, "--domain", "shop"];
        run(&[&args, more, &["user_id=42"]].concat())
    };
    let nothing = explain(&[]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("there are no rules"), "{nothing:?}");
    for limit in ["11", "12"] {
        succeeded(&stage.push(limit));
    }
    let newest = explain(&[]);
    succeeded(&newest);
    assert!(newest.stdout.contains("12 per year"), "{newest:?}");
    assert!(!newest.stdout.contains("without Redis"), "{newest:?}");
    let shared = explain(&["--store", &stage.url]);
    assert!(shared.stdout.contains("without Redis"), "{shared:?}");
    stage.redis.kill();
    let gone = explain(&[]);
    assert_eq!(gone.code, Some(2), "{gone:?}");
    assert!(gone.stderr.contains("cannot reach"), "{gone:?}");
}

#[test]
fn commands_without_a_redis_say_how_to_name_one() {
    let nowhere = run(&["rules", "history"]);
    assert_eq!(nowhere.code, Some(2), "{nowhere:?}");
    assert!(nowhere.stderr.contains("which Redis? name it with --to"));
    let both = run(&["config", "--rules", "redis://127.0.0.1:6379", "rules.yaml"]);
    assert!(
        both.stderr
            .contains("rules come from files or from one Redis, not from both")
    );
    let shown = run(&["config", "--rules", "redis://me:hunter2@127.0.0.1:6379"]);
    assert!(
        shown.stdout.contains("redis://…@127.0.0.1:6379"),
        "{shown:?}"
    );
    assert!(!shown.stdout.contains("hunter2"), "{shown:?}");
}
