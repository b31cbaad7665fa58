use super::*;

const SECOND: u64 = 1_000_000_000;

/// The parts of a tag do not touch each other, nor the lock.
#[test]
fn parts_of_a_tag_are_apart() {
    for hash in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF] {
        for number in [1, 2, 1_023] {
            let tag = Tag::new(hash, LayoutId::new(number));
            for pass in 0..12 {
                for form in [Form::Narrow, Form::Boxed] {
                    let pass = Pass { number: pass };
                    for marked in [tag.marked_once(pass), tag.marked_again(pass)] {
                        let marked = marked.with_form(form);
                        assert!(!marked.is_empty() && marked.is_same_counter(tag));
                        assert_eq!(marked.unmarked(), tag.with_form(form));
                        assert_eq!(marked.form(), form);
                        assert_eq!(marked.layout().get(), number);
                        assert_eq!(marked.fingerprint(), hash & FINGERPRINT);
                        assert_eq!(Tag::from_word(marked.word() | LOCK), marked);
                        assert_eq!(marked.word() & LOCK, 0);
                    }
                }
            }
        }
    }
    assert!(Tag::EMPTY.is_empty());
}

/// A counter that is requested again is protected for more than a second, and for less than three.
#[test]
fn a_mark_protects_for_more_than_a_second() {
    let new = Tag::new(7, LayoutId::new(1_023));
    for start in [0, 1 << PASS_BITS, 1_800_000_000 * SECOND] {
        for requested in (0..6 * SECOND)
            .step_by(100_000_001)
            .map(|after| start + after)
        {
            let marked = new.marked_again(pass(requested));
            let end = marked.evictable_at(pass(requested)).nanos();
            assert!(end > requested + SECOND && end < requested + 3 * SECOND);
            assert_eq!(marked.evictable_at(pass(end - 1)).nanos(), end);
            assert_eq!(marked.rank(pass(end - 1)), EvictionRank::InUse);
            assert_eq!(marked.evictable_at(pass(end)), Time::ZERO);
            assert_eq!(marked.rank(pass(end)), EvictionRank::Idle);
        }
    }
}

/// A counter that was requested once is never protected, and goes after those that are older.
#[test]
fn one_request_does_not_protect() {
    let new = Tag::new(7, LayoutId::new(1));
    for first in 0..12_u64 {
        let marked = new.marked_once(Pass { number: first });
        let rank = |passes: u64| {
            marked.rank(Pass {
                number: first + passes,
            })
        };
        assert_eq!(rank(0), EvictionRank::OnceNow);
        assert_eq!(rank(1), EvictionRank::OncePreviously);
        assert_eq!(rank(2), EvictionRank::Idle);
    }
    assert!(EvictionRank::Idle < EvictionRank::OncePreviously);
    assert!(EvictionRank::OncePreviously < EvictionRank::OnceNow);
    assert!(EvictionRank::OnceNow < EvictionRank::InUse);
}

/// A mark that was recognised as old stays old, whatever the pass.
#[test]
fn an_old_mark_stays_old() {
    let new = Tag::new(7, LayoutId::new(1));
    for first in 0..12_u64 {
        let pass = |passes: u64| Pass {
            number: first + passes,
        };
        for marked in [new.marked_once(pass(0)), new.marked_again(pass(0))] {
            assert_eq!(marked.aged(pass(1)), marked);
            let aged = marked.aged(pass(2));
            for later in 2..20 {
                assert_eq!(aged.rank(pass(later)), EvictionRank::Idle);
            }
        }
    }
}

fn pass(nanos: u64) -> Pass {
    Pass::at(Time::from_nanos(nanos))
}

/// Counters differ by fingerprint or layout, not by what happened to them.
#[test]
fn other_counters_have_other_tags() {
    let tag = Tag::new(7, LayoutId::new(3));
    assert!(!tag.is_same_counter(Tag::new(8, LayoutId::new(3))));
    assert!(!tag.is_same_counter(Tag::new(7, LayoutId::new(4))));
    assert!(tag.is_same_counter(Tag::new(7 | 1 << FINGERPRINT_BITS, LayoutId::new(3))));
}
