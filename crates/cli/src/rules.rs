//! `tidegate rules`: versions of rules in Redis.

mod history;
mod push;
mod rollback;
mod show;

use std::process::ExitCode;

use tidegate_store_redis::book::{BookError, RuleBook};

use crate::args::{AboutArgs, RulesArgs, RulesCommand, SettingArgs};
use crate::config::{self, Rules};
use crate::failure::Failure;
use crate::rules_source::PushedError;
use crate::version::Bundle;
use crate::{runtime, terminal};

/// Does what is asked.
pub(crate) fn run(args: &RulesArgs) -> Result<ExitCode, Failure> {
    let runtime = runtime::start()?;
    runtime.block_on(async {
        match &args.command {
            RulesCommand::Push(args) => push::run(args).await,
            RulesCommand::History(args) => history::run(args).await,
            RulesCommand::Show(args) => show::run(args).await,
            RulesCommand::Rollback(args) => rollback::run(args).await,
        }
    })
}

/// The versions in one Redis, and how they are read.
#[derive(Debug)]
struct Shelf {
    /// Where it is, for people.
    place: String,
    book: RuleBook,
    rules: Rules,
}

// === impl Shelf ===

impl Shelf {
    /// The one that is named, else the one that servers are told of. Unless it is said where their counters are,
    /// rules are for servers that have those in Redis too: what is good for them is good for any.
    fn open(settings: &SettingArgs) -> Result<Self, Failure> {
        let loaded = config::load(settings)?;
        terminal::eprint(&loaded.typed_in_vain());
        let is_store_said = loaded.is_said("store.engine");
        let mut rules = loaded.config.rules;
        if !is_store_said {
            rules.sharing = rules.sharing.among_nodes();
        }
        let place = rules.pushed.as_ref().ok_or(Failure::NoPlace)?;
        let login = place.login()?;
        Ok(Self {
            place: place.url.to_string(),
            book: RuleBook::new(&login, &place.name.0).map_err(Failure::NoTls)?,
            rules,
        })
    }

    /// The number of the newest version; `None` if there is none. A key that no push has written names none either,
    /// and is reported on stderr.
    async fn newest_number(&self) -> Result<Option<u64>, Failure> {
        let head = self.book.head().await.map_err(|it| self.failure(it))?;
        let newest = match head.map(|head| head.read()).transpose() {
            Ok(newest) => newest,
            Err(reason) => {
                terminal::eprint(&format!(
                    "warning: {reason}, in {}; servers keep their rules until the next push or rollback\n",
                    self.place
                ));
                None
            }
        };
        Ok(newest.map(|(number, _)| number))
    }

    /// The files of a version.
    async fn fetch(&self, number: u64) -> Result<Bundle, Failure> {
        let version = self.book.fetch(number).await;
        let version = version.map_err(|it| self.failure(it))?;
        Bundle::read(&version.body).map_err(|reason| {
            Failure::Pushed(PushedError::NoBundle {
                number,
                place: self.place.clone(),
                reason,
            })
        })
    }

    fn failure(&self, reason: BookError) -> Failure {
        let place = self.place.clone();
        Failure::Pushed(match reason {
            reason @ BookError::Store(_) => PushedError::Unreachable { place, reason },
            BookError::NoVersion { number } => PushedError::NoVersion { number, place },
            reason => PushedError::Refused { place, reason },
        })
    }

    fn nothing(&self) -> Failure {
        let place = self.place.clone();
        Failure::Pushed(PushedError::Nothing { place })
    }
}

/// Who pushes, as the history will say.
fn author(args: &AboutArgs) -> String {
    args.author.clone().unwrap_or_else(config::author)
}
