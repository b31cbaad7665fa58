//! Many patterns of one key, searched together.
//!
//! Each pattern with text between two stars, held alone against a long value, reads all of it. The index finds the *literals*, the texts between
//! stars, of all patterns in one pass over the value, and then looks only at patterns whose first literal is there:
//!
//! 1. One automaton reads the value and reports where literals end. A pattern that is one literal between stars matches at once.
//! 2. What it reports for other patterns is sorted by literal and place.
//! 3. Each candidate walks its literals, each as early as it can, by binary search.
//!
//! The first pattern in the order of the file is the answer, so patterns after the best one so far are not looked at. The steps are bounded by the
//! length of the value times the number of literals that end in one another, and by the number of literals times the logarithm of that.

use aho_corasick::Anchored;
use aho_corasick::automaton::Automaton;
use aho_corasick::nfa::contiguous::NFA;

use crate::pattern::{Pattern, Wildcard};
use crate::rule_set::NodeId;

/// The patterns of one key that have literals.
#[derive(Clone, Debug)]
pub(crate) struct PatternIndex {
    automaton: NFA,
    literals: Vec<Literal>,
    patterns: Vec<IndexedPattern>,
    /// The places of all other patterns in the list of patterns.
    others: Vec<usize>,
}

/// A text between two stars.
#[derive(Clone, Debug)]
struct Literal {
    n_bytes: usize,
    /// The first pattern that is this literal between two stars.
    alone: usize,
    /// Patterns of more parts that begin with this literal, by index in the list of indexed patterns.
    begins: Vec<usize>,
    /// The first pattern of more parts that has this literal.
    first_use: usize,
}

/// A pattern of more parts than one literal.
#[derive(Clone, Debug)]
struct IndexedPattern {
    /// Its place in the list of patterns.
    place: usize,
    prefix: Box<str>,
    suffix: Box<str>,
    /// The literals between prefix and suffix, at least one.
    literals: Vec<usize>,
}

/// The literals that a value holds, for patterns of more parts.
#[derive(Default)]
struct Occurrences {
    /// The number of a literal in the upper half and an end of it in the lower one: sorted, the ends of one literal stand together,
    /// and one comparison of integers orders two of them.
    list: Vec<u64>,
    /// A bit for each literal that is there, which rules most patterns out.
    present: Vec<u64>,
}

/// Fewer patterns with literals are quicker held against the value one by one, and that takes no memory.
const LEAST_PATTERNS: usize = 16;

/// Behind every pattern.
const NONE: usize = usize::MAX;

// === impl PatternIndex ===

impl PatternIndex {
    /// An index of the patterns, if it is of use.
    pub(crate) fn new(patterns: &[(Pattern, NodeId)]) -> Option<Self> {
        let mut builder = Builder::default();
        for (place, (pattern, _)) in patterns.iter().enumerate() {
            builder.add(place, pattern);
        }
        if builder.n_indexed < LEAST_PATTERNS {
            return None;
        }
        // A table of all transitions would take a hundred times the memory.
        let automaton = NFA::new(&builder.texts).ok()?;
        Some(Self {
            automaton,
            literals: builder.literals,
            patterns: builder.patterns,
            others: builder.others,
        })
    }

    /// The place of the first pattern that matches. Patterns without literals are held against the value by `matches`.
    pub(crate) fn find(&self, value: &str, matches: impl Fn(usize) -> bool) -> Option<usize> {
        self.find_counting(value, matches, &mut 0)
    }

    /// The same, counting what was looked at.
    fn find_counting(
        &self,
        value: &str,
        matches: impl Fn(usize) -> bool,
        n_steps: &mut usize,
    ) -> Option<usize> {
        let other = self.others.iter().find(|place| matches(**place));
        let mut best = other.copied().unwrap_or(NONE);
        let mut occurrences = Occurrences::default();
        let mut state = self.automaton.start_state(Anchored::No).ok()?;
        for (at, byte) in value.bytes().enumerate() {
            state = self.automaton.next_state(Anchored::No, state, byte);
            if !self.automaton.is_match(state) {
                continue;
            }
            for index in 0..self.automaton.match_len(state) {
                *n_steps += 1;
                let number = self.automaton.match_pattern(state, index).as_usize();
                let literal = &self.literals[number];
                best = best.min(literal.alone);
                if literal.first_use < best {
                    occurrences.add(number, at + 1, self.literals.len());
                }
            }
        }
        occurrences.list.sort_unstable();
        let same = |one: &u64, next: &u64| one >> 32 == next >> 32;
        for ends in occurrences.list.chunk_by(same) {
            let number = ends.first().map_or(0, |it| number_of(*it));
            for index in &self.literals[number].begins {
                let pattern = &self.patterns[*index];
                *n_steps += 1;
                if pattern.place >= best {
                    break;
                }
                if self.is_match(pattern, value, &occurrences, n_steps) {
                    best = pattern.place;
                    break;
                }
            }
        }
        (best != NONE).then_some(best)
    }

    fn is_match(
        &self,
        pattern: &IndexedPattern,
        value: &str,
        occurrences: &Occurrences,
        n_steps: &mut usize,
    ) -> bool {
        let has_ends = value.starts_with(&*pattern.prefix) && value.ends_with(&*pattern.suffix);
        if !has_ends || !pattern.literals.iter().all(|it| occurrences.has(*it)) {
            return false;
        }
        let mut at = pattern.prefix.len();
        for number in &pattern.literals {
            *n_steps += 1;
            let least = at + self.literals[*number].n_bytes;
            match occurrences.next(*number, least) {
                Some(end) => at = end,
                None => return false,
            }
        }
        at + pattern.suffix.len() <= value.len()
    }
}

// === impl Occurrences ===

impl Occurrences {
    fn add(&mut self, number: usize, end: usize, n_literals: usize) {
        // Every front bounds values far below 4 GiB, and files bound the number of literals.
        debug_assert!(end >> 32 == 0 && number >> 32 == 0);
        self.list.push(packed(number, end));
        if self.present.is_empty() {
            self.present.resize(n_literals / 64 + 1, 0);
        }
        self.present[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.present[number / 64] >> (number % 64) & 1 == 1
    }

    /// The first end of a literal that is not before `least`.
    fn next(&self, number: usize, least: usize) -> Option<usize> {
        let least = packed(number, least);
        let next = self.list.partition_point(|it| *it < least);
        let next = self.list.get(next).copied();
        let next = next.filter(|it| number_of(*it) == number)?;
        usize::try_from(next & u64::from(u32::MAX)).ok()
    }
}

fn packed(number: usize, end: usize) -> u64 {
    (number as u64) << 32 | end as u64
}

fn number_of(occurrence: u64) -> usize {
    usize::try_from(occurrence >> 32).unwrap_or(0)
}

/// Collects the literals of patterns.
#[derive(Default)]
struct Builder<'a> {
    numbers: hashbrown::HashMap<&'a str, usize>,
    texts: Vec<&'a str>,
    literals: Vec<Literal>,
    patterns: Vec<IndexedPattern>,
    others: Vec<usize>,
    n_indexed: usize,
}

// === impl Builder ===

impl<'a> Builder<'a> {
    fn add(&mut self, place: usize, pattern: &'a Pattern) {
        let Pattern::Wildcard(Wildcard::Parts(parts)) = pattern else {
            return self.others.push(place);
        };
        let [prefix, middle @ .., suffix] = &**parts else {
            return self.others.push(place);
        };
        let texts = middle.iter().filter(|text| !text.is_empty());
        let literals: Vec<usize> = texts.map(|text| self.number(text)).collect();
        let Some(first) = literals.first() else {
            return self.others.push(place);
        };
        self.n_indexed += 1;
        if literals.len() == 1 && prefix.is_empty() && suffix.is_empty() {
            let literal = &mut self.literals[*first];
            literal.alone = literal.alone.min(place);
            return;
        }
        self.literals[*first].begins.push(self.patterns.len());
        for number in &literals {
            let literal = &mut self.literals[*number];
            literal.first_use = literal.first_use.min(place);
        }
        self.patterns.push(IndexedPattern {
            place,
            prefix: prefix.clone(),
            suffix: suffix.clone(),
            literals,
        });
    }

    fn number(&mut self, text: &'a str) -> usize {
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.literals.push(Literal {
                n_bytes: text.len(),
                alone: NONE,
                begins: Vec::new(),
                first_use: NONE,
            });
            self.literals.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
