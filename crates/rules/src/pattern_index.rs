//! Many patterns of one key, searched together.
//!
//! Each pattern with text between two stars, held alone against a long value, reads all of it. The index finds the *literals*, the texts between
//! stars, of all patterns in one pass over the value, and then looks only at patterns whose first literal is there:
//!
//! 1. One automaton reads the value and reports where literals end. A pattern that is one literal between stars matches at once.
//! 2. The ends that it reports for other patterns are sorted by literal.
//! 3. Each candidate walks its literals, each as early as it can, by binary search.
//!
//! The first pattern in the order of the file is the answer, so patterns after the best one so far are not looked at, and the value is not read on when
//! no indexed pattern stands before the best one. The steps are bounded by the
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
    /// The place of the first pattern that is indexed.
    first: usize,
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

/// The literals that a value holds, for patterns of more parts: number and end of each, in the order of their ends.
#[derive(Default)]
struct Occurrences(Vec<(u32, u32)>);

/// The same by literal.
struct LiteralEnds {
    /// For each literal the index of its first end; behind the last literal, the number of ends.
    starts: Vec<u32>,
    /// The ends of the literals, one literal after the other, each in order.
    ends: Vec<u32>,
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
        let mut others = builder.others.iter().enumerate();
        let first = others.position(|(place, other)| place != *other);
        Some(Self {
            first: first.unwrap_or(builder.others.len()),
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
        if best < self.first {
            return Some(best);
        }
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
                    occurrences.add(number, at + 1);
                }
            }
            if best <= self.first {
                return Some(best);
            }
        }
        if !occurrences.0.is_empty() {
            best = self.first_walk(value, &occurrences, best, n_steps);
        }
        (best != NONE).then_some(best)
    }

    /// The place of the first pattern of more parts that matches and stands before `best`, else `best`.
    fn first_walk(
        &self,
        value: &str,
        occurrences: &Occurrences,
        mut best: usize,
        n_steps: &mut usize,
    ) -> usize {
        let ends = occurrences.by_literal(self.literals.len());
        for (number, literal) in self.literals.iter().enumerate() {
            if literal.begins.is_empty() || ends.of(number).is_empty() {
                continue;
            }
            for index in &literal.begins {
                let pattern = &self.patterns[*index];
                *n_steps += 1;
                if pattern.place >= best {
                    break;
                }
                if self.is_match(pattern, value, &ends, n_steps) {
                    best = pattern.place;
                    break;
                }
            }
        }
        best
    }

    fn is_match(
        &self,
        pattern: &IndexedPattern,
        value: &str,
        ends: &LiteralEnds,
        n_steps: &mut usize,
    ) -> bool {
        let has_ends = value.starts_with(&*pattern.prefix) && value.ends_with(&*pattern.suffix);
        // The last literals tell patterns apart more often than the first ones, which they share.
        let mut literals = pattern.literals.iter().rev();
        if !has_ends || literals.any(|it| ends.of(*it).is_empty()) {
            return false;
        }
        let mut at = pattern.prefix.len();
        for number in &pattern.literals {
            *n_steps += 1;
            let least = at + self.literals[*number].n_bytes;
            match ends.next(*number, least) {
                Some(end) => at = end,
                None => return false,
            }
        }
        at + pattern.suffix.len() <= value.len()
    }
}

// === impl Occurrences ===

impl Occurrences {
    fn add(&mut self, number: usize, end: usize) {
        // Every front bounds values far below 4 GiB, and files bound the number of literals.
        if let (Ok(number), Ok(end)) = (u32::try_from(number), u32::try_from(end)) {
            self.0.push((number, end));
        }
    }

    /// Sorts by literal, by counting: the ends of each literal are in order already.
    fn by_literal(&self, n_literals: usize) -> LiteralEnds {
        let mut starts = vec![0_u32; n_literals + 1];
        for (number, _) in &self.0 {
            starts[*number as usize] += 1;
        }
        let mut total = 0;
        for start in &mut starts {
            total += *start;
            *start = total;
        }
        // Each start is where the ends of its literal stop; filled from behind, it comes to where they begin.
        let mut ends = vec![0; self.0.len()];
        for (number, end) in self.0.iter().rev() {
            let start = &mut starts[*number as usize];
            *start -= 1;
            ends[*start as usize] = *end;
        }
        LiteralEnds { starts, ends }
    }
}

// === impl LiteralEnds ===

impl LiteralEnds {
    /// The ends of a literal, in order; none if it is not there.
    fn of(&self, number: usize) -> &[u32] {
        &self.ends[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    /// The first end of a literal that is not before `least`.
    fn next(&self, number: usize, least: usize) -> Option<usize> {
        let is_before = |end: &u32| (*end as usize) < least;
        let ends = self.of(number);
        // Nearly always the first one will do.
        let next = match ends.first() {
            Some(first) if is_before(first) => ends.get(ends.partition_point(is_before)),
            first => first,
        };
        next.map(|end| *end as usize)
    }
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
