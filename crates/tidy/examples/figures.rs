//! Prints the figures of the product's language; `--names` lists the type names that are declared more than once.

use std::env;

use tidegate_tidy::Tree;
use tidegate_tidy::language::Figures;

fn main() {
    let mut figures = Figures::default();
    for source in Tree::of_this_repository().sources() {
        figures.add(&source);
    }
    println!("{figures}");
    if env::args().any(|argument| argument == "--names") {
        for (name, places) in figures.repeated_names() {
            println!("{name}: {}", places.join(" "));
        }
    }
}
