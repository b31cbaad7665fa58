//! Guesses what somebody meant to write.

/// The known word nearest to `word`, if it is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    // No word of the format is longer than 20 letters; a longer one is not a slip of the pen.
    let length = word.chars().count();
    if length > 30 {
        return None;
    }
    let reach = (length / 3).clamp(1, 4);
    known
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(length) <= reach)
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= reach)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// "did you mean `x`?", if there is a near word.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// "one of `a`, `b`, `c`".
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    format!("one of {}", words.join(", "))
}

/// How many letters must be inserted, dropped, changed or swapped with a neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before_last: Vec<usize> = vec![0; right.len() + 1];
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (row, &from) in left.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &to) in right.iter().enumerate() {
            let change = last[column] + usize::from(from != to);
            let mut best = change.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swap = row > 0 && column > 0 && from == right[column - 1] && left[row - 1] == to;
            if is_swap {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_word_that_was_meant() {
        let known = ["requests_per_unit", "unit", "unlimited", "name", "burst"];
        let check = |word, expected| assert_eq!(nearest(word, known), expected, "{word}");
        check("request_per_unit", Some("requests_per_unit"));
        check("requestsPerUnit", Some("requests_per_unit"));
        check("uint", Some("unit"));
        check("brust", Some("burst"));
        check("Unit", Some("unit"));
        check("colour", None);
        check("", None);
        check(&"x".repeat(1000), None);
    }

    #[test]
    fn counts_edits() {
        let check = |left, right, expected| assert_eq!(distance(left, right), expected);
        check("", "abc", 3);
        check("abc", "", 3);
        check("abc", "abc", 0);
        check("abc", "acb", 1);
        check("kitten", "sitting", 3);
        check("é", "e", 1);
    }
}
