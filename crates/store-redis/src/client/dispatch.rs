//! One call on its way: to the server that has its key, and on to others if a Cluster says so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_store::StoreError;

use super::fault::ServerFault;
use super::form::Form;
use super::link::{self, Asking};
use super::server::Server;
use super::time::{Span, now, pause};
use super::unclaimed::Unclaimed;
use super::{Client, Command, Reply, Route};

/// The reason why a server that answers is not asked.
struct SentOnInVain<'f>(&'f ServerFault);

/// How often a call is sent on before it is given up: a slot that moves sends it on once or twice.
const MOST_TURNS: u32 = 8;

/// How long to wait when some keys of a call are on their way to another server.
const LATER: Duration = Duration::from_millis(1);

// === impl Client ===

impl Client {
    pub(super) async fn dispatch<W>(
        &self,
        route: Route<'_>,
        form: Form<'_>,
        unclaimed: Option<&Unclaimed>,
        write: W,
    ) -> Result<Reply, StoreError>
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        let first = self.inner.topology.find(route, self.max_timeout()).await?;
        let mut sent_on = None;
        let asking = self.ask_around(&first, form, unclaimed, write, &mut sent_on);
        let answered = asking.await;
        if let Some(fault) = &sent_on
            && self.is_cluster()
        {
            match &answered {
                Ok(_) => first.directed(),
                Err(_) => first.misdirected(now(), &SentOnInVain(fault)),
            }
        }
        answered
    }

    /// Asks a server, and others that it names. Leaves in `sent_on` how the call was last sent on, if it was.
    async fn ask_around<W>(
        &self,
        first: &Arc<Server>,
        mut form: Form<'_>,
        unclaimed: Option<&Unclaimed>,
        write: W,
        sent_on: &mut Option<ServerFault>,
    ) -> Result<Reply, StoreError>
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        let topology = &self.inner.topology;
        let mut server = Arc::clone(first);
        let span = self.span(&server);
        let mut asking = Asking::No;
        for turn in 0..MOST_TURNS {
            if turn > 0 && span.is_over() {
                // Nobody waits for what would come of it, and it might still be charged.
                return Err(StoreError::Timeout {
                    after: span.length(),
                });
            }
            let asked = self.ask(&server, form, asking, span, unclaimed, &write)?;
            let fault = match asked.await {
                Ok(Ok(reply)) => return Ok(reply),
                Ok(Err(fault)) => fault,
                Err(error) => {
                    topology.doubt();
                    return Err(error);
                }
            };
            if fault.is_no_script() {
                // Somebody made Redis forget its scripts while we were connected.
                form = form.in_full();
                continue;
            }
            let Some(redirection) = fault.redirection() else {
                return Err(fault.into());
            };
            *sent_on = Some(fault);
            // Who asks again at the same place asks in the same way.
            asking = redirection.asking().unwrap_or(asking);
            match topology.follow(&server, &redirection)? {
                Some(other) => server = other,
                None => pause(LATER).await,
            }
        }
        Err(link::unavailable("the Cluster sent a call on and on"))
    }

    /// Sends a call to one server. What was not sent is an error here; a call under way is to be awaited.
    pub(super) fn ask<W>(
        &self,
        server: &Arc<Server>,
        form: Form<'_>,
        asking: Asking,
        span: Span,
        unclaimed: Option<&Unclaimed>,
        write: &W,
    ) -> Result<
        impl Future<Output = Result<Result<Reply, ServerFault>, StoreError>> + use<W>,
        StoreError,
    >
    where
        W: Fn(&mut Command<'_>) + Send,
    {
        let link = server.link().inspect_err(|_| self.inner.topology.doubt())?;
        let call = match form {
            Form::Joined(script, question) => link.join(script, span, question)?,
            _ => link.send(form.preface(), asking, span, unclaimed, |command| {
                form.begin(command);
                write(command);
            })?,
        };
        Ok(async move {
            let frame = call.await?;
            Ok(match ServerFault::of_frame(&frame) {
                Some(fault) => Err(fault),
                None => Ok(Reply::new(frame)),
            })
        })
    }
}

// === impl SentOnInVain ===

impl fmt::Display for SentOnInVain<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "calls are sent on and never answered, the last one by {}",
            self.0
        )
    }
}
