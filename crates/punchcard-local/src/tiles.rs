//! Scalar products of eight-bit weights with several vectors at once.
//!
//! Sixteen rows of weights lie interleaved, in tiles of 32 columns. One instruction turns the sixteen weights of a column into
//! floats, and one more for each vector multiplies them with the vector's element of this column and adds the products to
//! sixteen sums, which stay in registers. So weights are read and converted once for all the vectors of a call, and nothing is
//! added up across a register.
//!
//! Every sum takes the columns of a tile in their order, and then is scaled and added to those of the tiles before. That does
//! not depend on the number of vectors: the products of a vector are the same to the last bit, alone and among others.

use crate::kernels;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// Rows of a tile.
pub const ROWS: usize = 16;
/// Columns of a tile, which have a common scale in each row.
pub const COLUMNS: usize = 32;

/// Weights of some rows and columns. It begins at a line of the processor's cache, and takes nine of them.
#[derive(Debug, Clone)]
#[repr(C, align(64))]
pub struct Tile {
    /// What the weights of each row are multiples of.
    pub scales: [f32; ROWS],
    /// The multiples, column by column.
    pub quants: [[i8; ROWS]; COLUMNS],
}

impl Tile {
    /// Weights that are zero.
    pub const ZERO: Self = Self { scales: [0.0; ROWS], quants: [[0; ROWS]; COLUMNS] };

    /// The weights as floats: sixteen for each column, with `stride` elements from one column to the next.
    pub fn dequantise(&self, out: &mut [f32], stride: usize) {
        kernels::dequantise(&self.quants, &self.scales, stride, out);
    }
}

/// Vectors side by side, for one call of a kernel: `[columns, count]`.
#[derive(Debug)]
pub struct Bundle {
    count: usize,
    data: Vec<f32>,
}

impl Bundle {
    /// Some vectors of equal length, side by side.
    fn new(vectors: &[f32], columns: usize) -> Self {
        let count = vectors.len() / columns;
        let mut data = vec![0.0; vectors.len()];
        for (v, vector) in vectors.chunks_exact(columns).enumerate() {
            for (value, out) in vector.iter().zip(data[v..].iter_mut().step_by(count)) {
                *out = *value;
            }
        }
        Self { count, data }
    }
}

/// The kernels for what the processor can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernels(Level);

/// Nobody else can name a level that the processor lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// Sixteen floats in a register, and 32 registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Eight floats in a register, and 16 registers.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What the compiler makes of plain loops.
    Plain,
}

/// Some lanes of the rows of a tile and of those beside it.
#[derive(Debug, Clone, Copy)]
struct Strip<'a> {
    tiles: &'a [Tile],
    lane: usize,
}

/// Sums of `STRIPS` strips with `COUNT` vectors, of `WIDTH` rows each.
type Sums<const WIDTH: usize, const COUNT: usize, const STRIPS: usize> = [[[f32; WIDTH]; COUNT]; STRIPS];

impl Kernels {
    /// All that the processor can run, the best ones first.
    pub fn available() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            if std::is_x86_feature_detected!("avx512f") {
                levels.push(Level::Avx512);
            }
            if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                levels.push(Level::Avx2);
            }
        }
        levels.push(Level::Plain);
        levels.into_iter().map(Self).collect()
    }

    /// The best ones.
    pub fn best() -> Self {
        static BEST: OnceLock<Kernels> = OnceLock::new();
        *BEST.get_or_init(|| Self::available()[0])
    }

    /// Vectors that the registers have room for.
    pub fn most(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => 12,
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => 6,
            Level::Plain => 4,
        }
    }

    /// The vectors, row after row with `columns` elements each, in bundles as even as it goes: a bundle of a few costs nearly as
    /// much as a full one.
    pub fn bundles(self, vectors: &[f32], columns: usize) -> Vec<Bundle> {
        let count = vectors.len() / columns;
        let size = count.div_ceil(count.div_ceil(self.most()).max(1)).max(1);
        vectors.chunks(size * columns).map(|vectors| Bundle::new(vectors, columns)).collect()
    }

    /// The scalar products of rows of weights with all vectors of the bundles. The tiles of sixteen rows, `across` of them, follow
    /// one another. `out` is `[tiles.len() / across, vectors]`, sixteen products each.
    pub fn multiply(self, tiles: &[Tile], across: usize, bundles: &[Bundle], out: &mut [[f32; ROWS]]) {
        let vectors: usize = bundles.iter().map(|bundle| bundle.count).sum();
        let mut first = 0;
        for bundle in bundles {
            self.multiply_bundle(tiles, across, bundle, |row, vector| row * vectors + first + vector, out);
            first += bundle.count;
        }
    }

    /// Multiplies with one bundle, whose products with a row belong at `place(row, vector)`. A kernel takes as many strips at a
    /// time as hide how long an addition takes, where there are registers for their sums.
    fn multiply_bundle(
        self,
        tiles: &[Tile],
        across: usize,
        bundle: &Bundle,
        place: impl Fn(usize, usize) -> usize,
        out: &mut [[f32; ROWS]],
    ) {
        macro_rules! by_count {
            ($kernel:ident: $($count:literal with $strips:literal),*) => {
                match bundle.count {
                    $($count => in_strips::<_, $count, $strips>(
                        tiles, across, &bundle.data, place, out, $kernel::<$count, $strips>, $kernel::<$count, 1>,
                    ),)*
                    count => debug_assert!(false, "a bundle of {count}"),
                }
            };
        }
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => {
                fn kernel<const COUNT: usize, const STRIPS: usize>(
                    strips: [Strip<'_>; STRIPS],
                    vectors: &[[f32; COUNT]],
                ) -> Sums<16, COUNT, STRIPS> {
                    // SAFETY: there are kernels of this level only where the processor has been found to have AVX-512.
                    unsafe { avx512(strips, vectors) }
                }
                by_count!(kernel: 1 with 4, 2 with 4, 3 with 2, 4 with 2, 5 with 2, 6 with 2, 7 with 1, 8 with 1,
                    9 with 1, 10 with 1, 11 with 1, 12 with 1)
            }
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => {
                fn kernel<const COUNT: usize, const STRIPS: usize>(
                    strips: [Strip<'_>; STRIPS],
                    vectors: &[[f32; COUNT]],
                ) -> Sums<8, COUNT, STRIPS> {
                    // SAFETY: there are kernels of this level only where the processor has been found to have AVX2 and FMA.
                    unsafe { avx2(strips, vectors) }
                }
                by_count!(kernel: 1 with 4, 2 with 2, 3 with 2, 4 with 1, 5 with 1, 6 with 1)
            }
            Level::Plain => by_count!(plain: 1 with 2, 2 with 1, 3 with 1, 4 with 1),
        }
    }
}

/// Calls a kernel for the strips of all tiles, `STRIPS` at a time and the rest one by one. `place(row, vector)` tells where the
/// sums of sixteen rows belong.
fn in_strips<const WIDTH: usize, const COUNT: usize, const STRIPS: usize>(
    tiles: &[Tile],
    across: usize,
    vectors: &[f32],
    place: impl Fn(usize, usize) -> usize,
    out: &mut [[f32; ROWS]],
    kernel: impl Fn([Strip<'_>; STRIPS], &[[f32; COUNT]]) -> Sums<WIDTH, COUNT, STRIPS>,
    single: impl Fn([Strip<'_>; 1], &[[f32; COUNT]]) -> Sums<WIDTH, COUNT, 1>,
) {
    let vectors = vectors.as_chunks::<COUNT>().0;
    let (per_row, count) = (ROWS / WIDTH, tiles.len() / across * (ROWS / WIDTH));
    let strip =
        |index: usize| Strip { tiles: &tiles[index / per_row * across..][..across], lane: index % per_row * WIDTH };
    let mut put = |index: usize, sums: &[[f32; WIDTH]; COUNT]| {
        for (vector, sums) in sums.iter().enumerate() {
            out[place(index / per_row, vector)][index % per_row * WIDTH..][..WIDTH].copy_from_slice(sums);
        }
    };
    let even = count / STRIPS * STRIPS;
    for first in (0..even).step_by(STRIPS) {
        let sums = kernel(std::array::from_fn(|i| strip(first + i)), vectors);
        sums.iter().enumerate().for_each(|(i, sums)| put(first + i, sums));
    }
    for index in even..count {
        put(index, &single([strip(index)], vectors)[0]);
    }
}

/// The sums of all tiles of some strips, with the vectors' elements column by column.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512<const COUNT: usize, const STRIPS: usize>(
    strips: [Strip<'_>; STRIPS],
    vectors: &[[f32; COUNT]],
) -> Sums<16, COUNT, STRIPS> {
    let tiles = strips.map(|strip| strip.tiles);
    let mut sums = [[_mm512_setzero_ps(); COUNT]; STRIPS];
    for (index, vectors) in vectors.as_chunks::<COLUMNS>().0.iter().enumerate() {
        let tiles = tiles.map(|tiles| &tiles[index]);
        let mut parts = [[_mm512_setzero_ps(); COUNT]; STRIPS];
        for (column, values) in vectors.iter().enumerate() {
            for strip in 0..STRIPS {
                // SAFETY: sixteen bytes are read, of an array of sixteen.
                let bytes = unsafe { _mm_loadu_si128(tiles[strip].quants[column].as_ptr().cast()) };
                let weights = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes));
                for vector in 0..COUNT {
                    parts[strip][vector] =
                        _mm512_fmadd_ps(weights, _mm512_set1_ps(values[vector]), parts[strip][vector]);
                }
            }
        }
        for strip in 0..STRIPS {
            // SAFETY: sixteen floats are read, of an array of sixteen.
            let scales = unsafe { _mm512_loadu_ps(tiles[strip].scales.as_ptr()) };
            for vector in 0..COUNT {
                sums[strip][vector] = _mm512_fmadd_ps(parts[strip][vector], scales, sums[strip][vector]);
            }
        }
    }
    sums.map(|sums| {
        sums.map(|sum| {
            let mut out = [0.0; 16];
            // SAFETY: sixteen floats are written, to an array of sixteen.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sum) };
            out
        })
    })
}

/// As `avx512`, with half as many rows.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<const COUNT: usize, const STRIPS: usize>(
    strips: [Strip<'_>; STRIPS],
    vectors: &[[f32; COUNT]],
) -> Sums<8, COUNT, STRIPS> {
    let mut sums = [[_mm256_setzero_ps(); COUNT]; STRIPS];
    for (index, vectors) in vectors.as_chunks::<COLUMNS>().0.iter().enumerate() {
        // Tiles and lanes.
        let tiles = strips.map(|strip| (&strip.tiles[index], strip.lane.min(ROWS - 8)));
        let mut parts = [[_mm256_setzero_ps(); COUNT]; STRIPS];
        for (column, values) in vectors.iter().enumerate() {
            for strip in 0..STRIPS {
                let (tile, lane) = tiles[strip];
                // SAFETY: eight bytes are read from `lane` on, which is at most eight, of an array of sixteen.
                let bytes = unsafe { _mm_loadl_epi64(tile.quants[column].as_ptr().add(lane).cast()) };
                let weights = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
                for vector in 0..COUNT {
                    parts[strip][vector] =
                        _mm256_fmadd_ps(weights, _mm256_set1_ps(values[vector]), parts[strip][vector]);
                }
            }
        }
        for strip in 0..STRIPS {
            let (tile, lane) = tiles[strip];
            // SAFETY: eight floats are read from `lane` on, which is at most eight, of an array of sixteen.
            let scales = unsafe { _mm256_loadu_ps(tile.scales.as_ptr().add(lane)) };
            for vector in 0..COUNT {
                sums[strip][vector] = _mm256_fmadd_ps(parts[strip][vector], scales, sums[strip][vector]);
            }
        }
    }
    sums.map(|sums| {
        sums.map(|sum| {
            let mut out = [0.0; 8];
            // SAFETY: eight floats are written, to an array of eight.
            unsafe { _mm256_storeu_ps(out.as_mut_ptr(), sum) };
            out
        })
    })
}

/// As `avx2`, in loops that the compiler turns into the vector code of whatever processor there is.
fn plain<const COUNT: usize, const STRIPS: usize>(
    strips: [Strip<'_>; STRIPS],
    vectors: &[[f32; COUNT]],
) -> Sums<8, COUNT, STRIPS> {
    strips.map(|strip| {
        let mut sums = [[0.0; 8]; COUNT];
        for (tile, vectors) in strip.tiles.iter().zip(vectors.as_chunks::<COLUMNS>().0) {
            let mut parts = [[0.0; 8]; COUNT];
            for (quants, values) in tile.quants.iter().zip(vectors) {
                let weights = half(quants, strip.lane).map(f32::from);
                for vector in 0..COUNT {
                    for lane in 0..8 {
                        parts[vector][lane] = fused(weights[lane], values[vector], parts[vector][lane]);
                    }
                }
            }
            let scales = half(&tile.scales, strip.lane);
            for vector in 0..COUNT {
                for lane in 0..8 {
                    sums[vector][lane] = fused(parts[vector][lane], scales[lane], sums[vector][lane]);
                }
            }
        }
        sums
    })
}

/// Eight elements, the first or the last ones.
#[inline(always)]
fn half<T: Copy>(all: &[T; ROWS], lane: usize) -> [T; 8] {
    let halves = all.as_chunks::<8>().0;
    if lane == 0 { halves[0] } else { halves[1] }
}

/// `a * b + c`, in one instruction where every processor of the kind has one; elsewhere `mul_add` would be a slow function.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_arch = "aarch64") { a.mul_add(b, c) } else { a * b + c }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tiles of 16 * `down` rows, `across` beside each other.
    fn tiles(down: usize, across: usize) -> Vec<Tile> {
        (0..down * across)
            .map(|t| Tile {
                scales: std::array::from_fn(|row| ((row + t) % 5) as f32 * 0.25),
                quants: std::array::from_fn(|column| {
                    std::array::from_fn(|row| ((t * 512 + column * 16 + row) * 71 % 255) as u8 as i8)
                }),
            })
            .collect()
    }

    fn vectors(count: usize, columns: usize) -> Vec<f32> {
        (0..count * columns).map(|i| (i * 37 % 101) as f32 / 7.0 - 7.0).collect()
    }

    fn products(kernels: Kernels, tiles: &[Tile], across: usize, vectors: &[f32]) -> Vec<[f32; ROWS]> {
        let columns = across * COLUMNS;
        let mut out = vec![[f32::NAN; ROWS]; tiles.len() / across * (vectors.len() / columns)];
        kernels.multiply(tiles, across, &kernels.bundles(vectors, columns), &mut out);
        out
    }

    #[test]
    fn products_are_those_of_the_definition() {
        let across = 3;
        let tiles = tiles(5, across);
        for kernels in Kernels::available() {
            for count in 1..=30 {
                let vectors = vectors(count, across * COLUMNS);
                let found = products(kernels, &tiles, across, &vectors);
                for (i, found) in found.iter().enumerate() {
                    let (tiles, vector) = (&tiles[i / count * across..][..across], i % count);
                    for (row, found) in found.iter().enumerate() {
                        let weight = |column: usize| {
                            let tile = &tiles[column / COLUMNS];
                            f64::from(tile.quants[column % COLUMNS][row]) * f64::from(tile.scales[row])
                        };
                        let vector = &vectors[vector * across * COLUMNS..][..across * COLUMNS];
                        let exact: f64 = vector.iter().enumerate().map(|(c, x)| weight(c) * f64::from(*x)).sum();
                        assert!(
                            (f64::from(*found) - exact).abs() < 0.02,
                            "{kernels:?}, {count} vectors: {found} {exact}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_vector_has_the_same_products_alone_and_among_others() {
        let across = 4;
        let tiles = tiles(7, across);
        for kernels in Kernels::available() {
            let vectors = vectors(40, across * COLUMNS);
            let alone: Vec<_> =
                vectors.chunks(across * COLUMNS).map(|v| products(kernels, &tiles, across, v)).collect();
            for count in 1..=40 {
                let found = products(kernels, &tiles, across, &vectors[..count * across * COLUMNS]);
                for (i, found) in found.iter().enumerate() {
                    assert_eq!(found, &alone[i % count][i / count], "{kernels:?}, {count} vectors");
                }
            }
        }
    }
}
