//! How many products of weights and activations each kernel computes in a second, on one thread: `products [COLUMNS]`.

use punchcard_local::tiles::{COLUMNS, Kernels, ROWS, Tile};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let columns: usize = std::env::args().nth(1).map_or(Ok(576), |columns| columns.parse())?;
    let (across, down) = (columns.div_ceil(COLUMNS), 64);
    let tile = Tile { scales: [0.01; ROWS], quants: [[7; ROWS]; COLUMNS] };
    let tiles = vec![tile; across * down];
    for kernels in Kernels::available() {
        println!("{kernels:?}, {} rows of {columns} weights; billions of products a second", down * ROWS);
        for count in [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32, 64, 128] {
            let bundles = kernels.bundles(&vec![1.0; count * columns], columns);
            let mut out = vec![[0.0; ROWS]; down * count];
            let mut best = Duration::MAX;
            for _ in 0..20 {
                let begun = Instant::now();
                kernels.multiply(&tiles, across, &bundles, &mut out);
                best = best.min(begun.elapsed());
            }
            println!("  {count:3} vectors {:7.1}", (down * ROWS * columns * count) as f64 / best.as_secs_f64() / 1e9);
        }
    }
    Ok(())
}
