//! Paths that a route changes.

use http::Uri;
use http::uri::PathAndQuery;
use tidegate_identify::forwarded_path;

use crate::config::{PathMatch, PathRewrite};
use crate::route::below;

/// The request target after `rewrite`, in origin form. `path` is the path in its normal form, by which the route was matched. What is
/// kept of the path is cleaned and has the reserved escapes of the client; the query stays as it was.
pub(super) fn rewrite(
    uri: &Uri,
    path: &str,
    matched: &PathMatch,
    rewrite: Option<&PathRewrite>,
) -> Option<Uri> {
    let sent = forwarded_path(uri.path());
    let mut target = match rewrite {
        None => sent.into_owned(),
        Some(PathRewrite::Prefix(prefix)) => {
            let rest = match matched {
                PathMatch::Prefix(matched) => last_segments(&sent, below(matched, path)?),
                PathMatch::Exact(_) => "",
                PathMatch::Any | PathMatch::Pattern(_) => &sent,
            };
            format!("{}{rest}", prefix.trim_end_matches('/'))
        }
        Some(PathRewrite::Whole(template)) => fill(template, path, &sent, matched)?,
    };
    if target.is_empty() {
        target.push('/');
    }
    if let Some(query) = uri.query() {
        target.push('?');
        target.push_str(query);
    }
    PathAndQuery::try_from(target).ok().map(Uri::from)
}

/// As many segments at the end of `sent` as `rest` has. Both forms of a path have the same segments, because slashes and dots are
/// treated alike in both.
fn last_segments<'p>(sent: &'p str, rest: &str) -> &'p str {
    let Some(before_last) = rest.matches('/').count().checked_sub(1) else {
        return "";
    };
    let slash = sent.rmatch_indices('/').nth(before_last);
    slash.map_or(sent, |(at, _)| &sent[at..])
}

/// Fills `{name}` in from the route's pattern, as the client sent it.
fn fill(template: &str, path: &str, sent: &str, matched: &PathMatch) -> Option<String> {
    let PathMatch::Pattern(pattern) = matched else {
        return Some(template.to_owned());
    };
    let values = pattern.values(path, sent)?;
    let mut filled = String::with_capacity(template.len() + sent.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(values.get(name)?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

#[cfg(test)]
mod tests {
    use tidegate_identify::normal_path;

    use super::*;
    use crate::config::PathPattern;

    fn check(uri: &str, matched: &PathMatch, change: &PathRewrite, expected: Option<&str>) {
        let uri: Uri = uri.parse().unwrap();
        let path = normal_path(uri.path()).unwrap();
        let rewritten = rewrite(&uri, &path, matched, Some(change));
        assert_eq!(rewritten.map(|uri| uri.to_string()).as_deref(), expected);
    }

    #[test]
    fn prefixes_are_replaced_and_queries_stay() {
        let api = PathMatch::Prefix("/api".into());
        let to = |text: &str| PathRewrite::Prefix(text.into());
        check("/api/x?a=1", &api, &to("/"), Some("/x?a=1"));
        check("/api", &api, &to("/"), Some("/"));
        check("/api/x", &api, &to("/v2"), Some("/v2/x"));
        check("/x", &PathMatch::Any, &to("/v2"), Some("/v2/x"));
        let me = PathMatch::Prefix("/@me/x".into());
        check("/@me/x/y", &me, &to("/"), Some("/y"));
        check("/%40me/%78", &me, &to("/v2"), Some("/v2"));
    }

    #[test]
    fn reserved_characters_are_sent_on_as_they_came() {
        let api = PathMatch::Prefix("/@api".into());
        let to_v2 = PathRewrite::Prefix("/v2".into());
        let arn = "/%40api//x/../arn%3aaws%40@:/%2e/%6c/";
        check(arn, &api, &to_v2, Some("/v2/arn%3Aaws%40@:/l/"));
        check("/%40", &PathMatch::Any, &to_v2, Some("/v2/%40"));
        let user = PathMatch::Pattern(PathPattern::parse("/@u/{id}/{rest...}").unwrap());
        let whole = PathRewrite::Whole("/{rest}/of/{id}".into());
        let path = "/%40u/%40a%2Fb/c%3Ad/%40?e%40";
        check(path, &user, &whole, Some("/c%3Ad/%40/of/%40a%2Fb?e%40"));
    }

    #[test]
    fn placeholders_are_filled_in() {
        let user = PathMatch::Pattern(PathPattern::parse("/u/{id}/{rest...}").unwrap());
        let to = |text: &str| PathRewrite::Whole(text.into());
        check(
            "/u/7/a/b?q",
            &user,
            &to("/{rest}/of/{id}"),
            Some("/a/b/of/7?q"),
        );
        check("/u/7/a", &user, &to("/{nobody}"), None);
        check("/x", &PathMatch::Any, &to("/fixed"), Some("/fixed"));
    }
}
