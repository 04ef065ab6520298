//! Scalar products of rows of eight-bit weights with several vectors at once, for processors with AVX2.
//!
//! What bounds a product with one vector is the conversion of weights to floats, so one conversion should serve all that there
//! are, with every sum in a register: a further vector then costs two fifths of the first. The compiler, left to itself, keeps
//! sums of several vectors in memory for some numbers of them and not for others; so this one kernel names its registers.

use std::arch::x86_64::*;

/// Most vectors of one call: with so many sums, the registers still hold some weights and their scale.
pub const MOST: usize = 8;

/// Calls [`dot_rows_of`] if the processor has what it needs; false if not.
pub fn try_dot_rows_of<const COUNT: usize, const SETS: usize>(
    quants: &[i8],
    scales: &[f32],
    vectors: [&[f32]; COUNT],
    out: &mut [[f32; COUNT]],
) -> bool {
    let supported = is_supported();
    if supported {
        // SAFETY: the processor has just been found to have the features that the function is compiled for.
        unsafe { dot_rows_of::<COUNT, SETS>(quants, scales, vectors, out) };
    }
    supported
}

/// Whether the processor has AVX2 and multiplies and adds in one instruction.
pub fn is_supported() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

/// The scalar products of rows of quantised weights, one for each of `out`, with each of the vectors. Quants and vectors are in
/// blocks of 32, and each block of quants has a scale. `SETS` sums of eight numbers are kept for each vector: the processor
/// adds to eight of them at a time, so a few vectors want several.
#[target_feature(enable = "avx2,fma")]
fn dot_rows_of<const COUNT: usize, const SETS: usize>(
    quants: &[i8],
    scales: &[f32],
    vectors: [&[f32]; COUNT],
    out: &mut [[f32; COUNT]],
) {
    let blocks = vectors[0].len() / 32;
    let vectors = vectors.map(|vector| &vector.as_chunks::<32>().0[..blocks]);
    let quants = &quants.as_chunks::<32>().0[..out.len() * blocks];
    let scales = &scales[..out.len() * blocks];
    for (row, out) in out.iter_mut().enumerate() {
        let mut sums = [[_mm256_setzero_ps(); SETS]; COUNT];
        for block in 0..blocks {
            let quants = &quants[row * blocks + block];
            let scale = _mm256_set1_ps(scales[row * blocks + block]);
            for part in 0..4 {
                // SAFETY: eight bytes are read, the last of them at 8 * 3 + 7 = 31 of an array of 32.
                let bytes = unsafe { _mm_loadl_epi64(quants.as_ptr().add(8 * part).cast()) };
                let weights = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)), scale);
                for (sums, vector) in sums.iter_mut().zip(&vectors) {
                    // SAFETY: eight floats are read, the last of them at 8 * 3 + 7 = 31 of an array of 32.
                    let values = unsafe { _mm256_loadu_ps(vector[block].as_ptr().add(8 * part)) };
                    sums[part % SETS] = _mm256_fmadd_ps(weights, values, sums[part % SETS]);
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            let mut all = sums[0];
            for &sum in &sums[1..] {
                all = _mm256_add_ps(all, sum);
            }
            let half = _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all));
            let quarter = _mm_add_ps(half, _mm_movehl_ps(half, half));
            *out = _mm_cvtss_f32(_mm_add_ss(quarter, _mm_shuffle_ps::<1>(quarter, quarter)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    fn agrees<const COUNT: usize, const SETS: usize>() {
        let (rows, columns) = (5, 96);
        let quants: Vec<i8> = (0..rows * columns).map(|i| (i * 71 % 255) as u8 as i8).collect();
        let scales: Vec<f32> = (0..rows * columns / 32).map(|i| (i % 4) as f32 * 0.25).collect();
        let vectors: Vec<Vec<f32>> =
            (0..COUNT).map(|v| (0..columns).map(|i| ((i * 7 + v) % 9) as f32 - 4.0).collect()).collect();
        let mut found = vec![[0.0; COUNT]; rows];
        let of = std::array::from_fn(|v| vectors[v].as_slice());
        if !try_dot_rows_of::<COUNT, SETS>(&quants, &scales, of, &mut found) {
            return;
        }
        for (v, vector) in vectors.iter().enumerate() {
            let mut expected = vec![0.0; rows];
            kernels::dot_rows(&quants, &scales, vector, &mut expected);
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found[v] - expected).abs() < 1e-2, "{COUNT} vectors, {SETS} sets, vector {v}");
            }
        }
    }

    #[test]
    fn several_vectors_are_as_one_by_one() {
        agrees::<1, 4>();
        agrees::<2, 2>();
        agrees::<3, 1>();
        agrees::<6, 2>();
        agrees::<8, 1>();
    }
}
