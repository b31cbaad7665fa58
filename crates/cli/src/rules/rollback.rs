//! `tidegate rules rollback`.

use std::process::ExitCode;

use tidegate_store_redis::book::Expected;

use super::{Shelf, author, push};
use crate::args::RollbackArgs;
use crate::failure::Failure;
use crate::version::About;
use crate::{check, rules_files};

/// Makes an older version the newest again, under a new number.
pub(super) async fn run(args: &RollbackArgs) -> Result<ExitCode, Failure> {
    let shelf = Shelf::open(&args.settings())?;
    let newest = shelf.newest_number().await?;
    let number = match args.version {
        Some(number) => number,
        None => before(&shelf, newest).await?,
    };
    let bundle = shelf.fetch(number).await?;
    let mut rules = shelf.rules.clone();
    rules.merge_domains |= bundle.merge_domains;
    let compiled = rules_files::compile_all(&bundle.sources(number), &rules);
    check::print_text(bundle.files().len(), &compiled, rules.sharing, "");
    if compiled.is_err() {
        let place = shelf.place;
        return Err(Failure::NotBroughtBack { number, place });
    }
    let message = args.about.message.clone();
    let message = message.unwrap_or_else(|| format!("back to version {number}"));
    let about = About {
        restores: Some(number),
        ..About::new(&author(&args.about), &message, bundle.files().len())
    };
    let expected = newest.map_or(Expected::Nothing, Expected::Newest);
    push::push(&shelf, &bundle, &about, expected).await
}

/// The version before `newest`, or the last one if none is the newest: somebody may have broken that by
/// hand. One that came back stands where it stood first, so that whoever goes back twice goes further
/// back, and not to what was left.
async fn before(shelf: &Shelf, newest: Option<u64>) -> Result<u64, Failure> {
    let history = shelf.book.history().await;
    let entries = history.map_err(|it| shelf.failure(it))?.entries;
    let entry = entries.iter().find(|entry| Some(entry.number) == newest);
    let restored = entry.and_then(|entry| About::read(&entry.about).restores);
    let stands_at = restored.or(newest);
    let is_older = |number: &u64| stands_at.is_none_or(|newest| *number < newest);
    let found = entries.iter().map(|entry| entry.number).find(is_older);
    found.ok_or_else(|| match stands_at {
        None => shelf.nothing(),
        Some(number) => Failure::NothingBefore {
            number,
            place: shelf.place.clone(),
        },
    })
}
