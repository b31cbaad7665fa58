//! Paths that a route changes.

use http::Uri;
use http::uri::PathAndQuery;
use tidegate_identify::forwarded_path;

use crate::config::{PathMatch, PathRewrite};
use crate::route::below;

/// The request target after `rewrite`, in origin form. `path` is the path in its normal form; the query stays as it was. Without a
/// rewrite the path is cleaned all the same, so that the upstream gets the one that the route was matched by.
pub(super) fn rewrite(
    uri: &Uri,
    path: &str,
    matched: &PathMatch,
    rewrite: Option<&PathRewrite>,
) -> Option<Uri> {
    let mut target = match rewrite {
        None => forwarded_path(uri.path()).into_owned(),
        Some(PathRewrite::Prefix(prefix)) => {
            let rest = match matched {
                PathMatch::Prefix(matched) => below(matched, path)?,
                PathMatch::Exact(_) => "",
                PathMatch::Any | PathMatch::Pattern(_) => path,
            };
            format!("{}{rest}", prefix.trim_end_matches('/'))
        }
        Some(PathRewrite::Whole(template)) => fill(template, path, matched)?,
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

/// Fills `{name}` in from the route's pattern.
fn fill(template: &str, path: &str, matched: &PathMatch) -> Option<String> {
    let PathMatch::Pattern(pattern) = matched else {
        return Some(template.to_owned());
    };
    let values = pattern.values(path)?;
    let mut filled = String::with_capacity(template.len() + path.len());
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
    use super::*;
    use crate::config::PathPattern;

    fn check(uri: &str, matched: &PathMatch, change: &PathRewrite, expected: Option<&str>) {
        let uri: Uri = uri.parse().unwrap();
        let rewritten = rewrite(&uri, uri.path(), matched, Some(change));
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
