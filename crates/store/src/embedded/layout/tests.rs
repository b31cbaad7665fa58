use super::*;

fn layout(window: u64) -> Layout {
    let shapes = [
        Shape::Instant,
        Shape::Window,
        Shape::Portion,
        Shape::Pair,
        Shape::Log,
        Shape::Counts,
    ];
    let shape = shapes[usize::try_from(window % 6).expect("small")];
    Layout { shape, window }
}

/// As many layouts as there are numbers get one each, for good; the next one is an error.
#[test]
fn each_layout_has_a_number_of_its_own() {
    let layouts = Layouts::new();
    let all: Vec<Layout> = (0..LAYOUTS as u64 - 1)
        .map(|n| layout(1_000_000 + n))
        .collect();
    let mut numbers: Vec<u16> = Vec::new();
    for &layout in &all {
        numbers.push(layouts.number(layout).expect("a number").get());
    }
    for (&layout, &number) in all.iter().zip(&numbers) {
        assert_eq!(layouts.number(layout).expect("the same").get(), number);
        assert_eq!(layouts.get(LayoutId::new(number)), Some(layout));
        let found = layouts.find(layout).map(LayoutId::get);
        assert!(found.is_none_or(|found| found == number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), all.len(), "no number twice");
    assert_ne!(numbers[0], 0, "0 marks an empty slot");
    let most = LAYOUTS - 1;
    let error = StoreError::TooManyWindows { most };
    assert_eq!(layouts.number(layout(2_000_000)), Err(error));
}

/// The index of the last window of time fits its bits, whatever the window.
#[test]
fn indices_fit_until_the_end_of_time() {
    for bits in 20..58 {
        for window in [1 << bits, (1 << bits) + 1, (2 << bits) - 1] {
            let index_bits = layout(window).index_bits();
            let last = Time::MAX.nanos() / window;
            assert_eq!(last.checked_shr(index_bits).unwrap_or(0), 0, "{window}");
        }
    }
}
