//! `tidegate rules push`.

use std::path::PathBuf;
use std::process::ExitCode;

use tidegate_rules::Source;
use tidegate_store_redis::book::{Draft, Expected, Pushed};

use super::{Shelf, author};
use crate::args::PushArgs;
use crate::check;
use crate::config::RulesFiles;
use crate::failure::Failure;
use crate::rules_files::{self, Unreadable};
use crate::terminal;
use crate::version::{About, Bundle, changes};

/// Checks the rules, says what was found, and makes them the newest version if they are good.
pub(super) async fn run(args: &PushArgs) -> Result<ExitCode, Failure> {
    let shelf = Shelf::open(&args.settings())?;
    let found = read(&args.paths)?;
    let sources: Vec<Source> = found.iter().map(|(_, source)| source.clone()).collect();
    let mut rules = shelf.rules.clone();
    rules.merge_domains |= args.compile.merge_domains;
    let compiled = rules_files::compile_all(&sources, &rules);
    check::print_text(sources.len(), &compiled, rules.sharing, "");
    if compiled.is_err() {
        let place = shelf.place;
        return Err(Failure::NotPushed { place });
    }
    let bundle = Bundle::new(&found, rules.merge_domains).map_err(Failure::NoBundle)?;
    let message = args.about.message.as_deref().unwrap_or_default();
    let about = About::new(&author(&args.about), message, bundle.files().len());
    let expected = match args.expect {
        None => Expected::Any,
        Some(0) => Expected::Nothing,
        Some(number) => Expected::Newest(number),
    };
    // Redis says that a password is missing only to a short command, so it is asked something first.
    shelf.newest_number().await?;
    push(&shelf, &bundle, &about, expected).await
}

/// Pushes and says what came of it.
pub(super) async fn push(
    shelf: &Shelf,
    bundle: &Bundle,
    about: &About,
    expected: Expected,
) -> Result<ExitCode, Failure> {
    let (body, about) = (bundle.body(), about.line());
    let draft = Draft {
        body: &body,
        about: &about,
    };
    let pushed = shelf.book.push(draft, expected).await;
    let place = &shelf.place;
    match pushed.map_err(|it| shelf.failure(it))? {
        Pushed::New { number, before } => {
            let since = match before {
                Some(before) => since(shelf, before, bundle).await,
                None => "\n".to_owned(),
            };
            terminal::print(&format!("pushed version {number} to {place}{since}"));
            Ok(ExitCode::SUCCESS)
        }
        Pushed::Same { number } => {
            let told = format!("nothing to push: version {number} in {place} is the same\n");
            terminal::print(&told);
            Ok(ExitCode::SUCCESS)
        }
        Pushed::Overtaken { newest } => Err(Failure::Overtaken {
            expected,
            newest,
            place: place.clone(),
        }),
    }
}

/// The predecessor of a version that was pushed, and the difference to it.
async fn since(shelf: &Shelf, before: u64, bundle: &Bundle) -> String {
    // The push is done: a predecessor that cannot be read has no difference to show.
    let old = shelf.fetch(before).await.ok();
    let differs = old.map_or_else(String::new, |old| changes(&old, bundle));
    format!(" (before it: version {before})\n{differs}")
}

/// All files, each with the path that led to it.
fn read(paths: &[PathBuf]) -> Result<Vec<(PathBuf, Source)>, Failure> {
    let (mut found, mut unreadable) = (Vec::new(), Unreadable::default());
    for path in paths {
        let (sources, faults) = rules_files::read(std::slice::from_ref(path), RulesFiles::Yaml);
        found.extend(sources.into_iter().map(|source| (path.clone(), source)));
        unreadable.extend(faults);
    }
    if unreadable.faults().is_empty() {
        Ok(found)
    } else {
        Err(Failure::Unreadable(unreadable))
    }
}
