//! The arithmetic between the matrix products, on plain slices of `f32`.
//!
//! Each kernel is written once, as a loop that the compiler turns into vector code, and compiled twice on x86-64: for the
//! baseline, and for AVX2 with FMA, chosen at run time. Reductions keep sixteen partial sums, since the compiler may not
//! reorder a sum of floats by itself.

const LANES: usize = 16;
/// 1.5 * 2^23: adding it rounds a small float to an integer, which then stands in the low bits of the sum.
const ROUND: f32 = 12_582_912.0;

/// Compiles a kernel for the baseline and for AVX2, and calls what the processor can run.
macro_rules! kernels {
    ($($(#[$doc:meta])* pub fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        $(#[$doc])*
        pub fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn plain($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    plain($($argument),*)
                }
                if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
                    // SAFETY: the processor has just been found to have the features that `avx2` is compiled for.
                    return unsafe { avx2($($argument),*) };
                }
            }
            plain($($argument),*)
        }
    )*};
}

kernels! {
    /// The sum of squares.
    pub fn sum_of_squares(values: &[f32]) -> f32 {
        let (chunks, rest) = values.as_chunks::<LANES>();
        let mut sums = [0.0f32; LANES];
        for chunk in chunks {
            for (sum, value) in sums.iter_mut().zip(chunk) {
                *sum += value * value;
            }
        }
        sums.iter().sum::<f32>() + rest.iter().map(|value| value * value).sum::<f32>()
    }

    /// `out = values * scale * weights`, element by element.
    pub fn scale(values: &[f32], scale: f32, weights: &[f32], out: &mut [f32]) {
        for ((out, value), weight) in out.iter_mut().zip(values).zip(weights) {
            *out = value * scale * weight;
        }
    }

    /// `values += others`.
    pub fn add(values: &mut [f32], others: &[f32]) {
        for (value, other) in values.iter_mut().zip(others) {
            *value += other;
        }
    }

    /// `out = gate * sigmoid(gate) * up`: the SwiGLU activation.
    pub fn swiglu(gate: &[f32], up: &[f32], out: &mut [f32]) {
        for ((gate, up), out) in gate.iter().zip(up).zip(out) {
            *out = gate / (1.0 + exp(-gate)) * up;
        }
    }

    /// The scale of each block of 32 values: its largest magnitude becomes 127.
    pub fn block_scales(values: &[f32], scales: &mut [f32]) {
        for (block, scale) in values.as_chunks::<32>().0.iter().zip(scales) {
            let mut tops = [0.0f32; LANES];
            for half in block.as_chunks::<LANES>().0 {
                for (top, value) in tops.iter_mut().zip(half) {
                    let magnitude = value.abs();
                    *top = if magnitude > *top { magnitude } else { *top };
                }
            }
            *scale = tops.iter().copied().fold(0.0, f32::max) / 127.0;
        }
    }

    /// Values as signed bytes, in units of their block's scale.
    pub fn quantise(values: &[f32], scales: &[f32], quants: &mut [i8]) {
        let blocks = values.as_chunks::<32>().0.iter().zip(scales);
        for ((block, &scale), quants) in blocks.zip(quants.as_chunks_mut::<32>().0) {
            let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
            for (quant, value) in quants.iter_mut().zip(block) {
                // The low byte of a two's complement is the signed byte.
                *quant = (value * inverse + ROUND).to_bits() as i8;
            }
        }
    }

    /// Signed bytes as floats, in units of their lane's scale: sixteen for each column, with `stride` floats from one column to
    /// the next.
    pub fn dequantise(columns: &[[i8; LANES]], scales: &[f32; LANES], stride: usize, floats: &mut [f32]) {
        // Known to be sixteen, they become vectors.
        let floats = floats.chunks_mut(stride).filter_map(|floats| floats.first_chunk_mut::<LANES>());
        for (quants, floats) in columns.iter().zip(floats) {
            for lane in 0..LANES {
                floats[lane] = f32::from(quants[lane]) * scales[lane];
            }
        }
    }

    /// Turns scores into weights that sum to one.
    pub fn softmax(scores: &mut [f32]) {
        let (chunks, rest) = scores.as_chunks_mut::<LANES>();
        let mut tops = [f32::NEG_INFINITY; LANES];
        for chunk in chunks.iter() {
            for (top, score) in tops.iter_mut().zip(chunk) {
                *top = if *score > *top { *score } else { *top };
            }
        }
        let top = tops.iter().chain(rest.iter()).copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sums = [0.0f32; LANES];
        for chunk in chunks.iter_mut() {
            for (sum, score) in sums.iter_mut().zip(chunk) {
                *score = exp(*score - top);
                *sum += *score;
            }
        }
        let mut sum: f32 = sums.iter().sum();
        for score in rest.iter_mut() {
            *score = exp(*score - top);
            sum += *score;
        }
        let factor = 1.0 / sum;
        for score in scores {
            *score *= factor;
        }
    }
}

/// `e^x`, to about two units in the last place, without a branch. Outside ±87 the result is that of the nearest bound, so it
/// is never zero nor infinite.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // x = n ln 2 + r with |r| <= ln 2 / 2.
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first short enough for the product with n to be exact.
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let polynomial = 1.0 / 5040.0;
    let polynomial = polynomial * r + 1.0 / 720.0;
    let polynomial = polynomial * r + 1.0 / 120.0;
    let polynomial = polynomial * r + 1.0 / 24.0;
    let polynomial = polynomial * r + 1.0 / 6.0;
    let polynomial = polynomial * r + 0.5;
    let polynomial = polynomial * r + 1.0;
    let polynomial = polynomial * r + 1.0;
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
    polynomial * f32::from_bits(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_close() {
        for step in -8700..=8700 {
            let x = step as f32 / 100.0;
            let (found, exact) = (f64::from(exp(x)), f64::from(x).exp());
            assert!((found / exact - 1.0).abs() < 1e-6, "exp({x}) = {found}, not {exact}");
        }
        assert!(exp(-1e30) < 1e-37 && exp(1e30) > 1e37);
    }

    #[test]
    fn softmax_agrees_with_its_definition() {
        for len in [1, 2, 15, 16, 17, 100] {
            let scores: Vec<f32> = (0..len).map(|i| ((i * 37 % 19) as f32 - 9.0) * 0.7).collect();
            let total: f64 = scores.iter().map(|&score| f64::from(score).exp()).sum();
            let mut weights = scores.clone();
            softmax(&mut weights);
            for (weight, score) in weights.iter().zip(&scores) {
                assert!((f64::from(*weight) - f64::from(*score).exp() / total).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn swiglu_agrees_with_its_definition() {
        let gate: Vec<f32> = (-50..50).map(|i| i as f32 / 3.0).collect();
        let up: Vec<f32> = (0..100).map(|i| i as f32 / 7.0).collect();
        let expected: Vec<f32> = gate.iter().zip(&up).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
        let mut activation = vec![0.0; 100];
        swiglu(&gate, &up, &mut activation);
        for (found, expected) in activation.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-5 * (1.0 + expected.abs()));
        }
    }

    #[test]
    fn quantised_values_are_within_half_a_step() {
        let mut values: Vec<f32> = (0..96).map(|i| ((i * 53 % 97) as f32 - 48.0) / 5.0).collect();
        values[32..64].fill(0.0);
        let (mut scales, mut quants) = (vec![0.0; 3], vec![0; 96]);
        block_scales(&values, &mut scales);
        quantise(&values, &scales, &mut quants);
        for (i, (&quant, value)) in quants.iter().zip(&values).enumerate() {
            assert!((f32::from(quant) * scales[i / 32] - value).abs() <= 0.5001 * scales[i / 32]);
        }
        assert!(quants.iter().any(|&quant| quant.abs() == 127) && scales[1] == 0.0);
    }

    #[test]
    fn sums_take_in_every_element() {
        for len in 0..40 {
            let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
            let expected: f32 = values.iter().map(|value| value * value).sum();
            assert_eq!(sum_of_squares(&values), expected);
        }
    }
}
