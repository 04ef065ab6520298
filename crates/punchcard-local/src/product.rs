//! Products of float matrices.

/// How the right factor of a product lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// `[inner, columns]`.
    Plain,
    /// `[columns, inner]`.
    Transposed,
}

/// `out = left × right` on this thread. `left` is `[rows, inner]`; `out` is `[rows, columns]`, with `stride` elements from one
/// row to the next.
///
/// # Panics
/// Where a slice is too short for its extents.
pub fn multiply(
    out: &mut [f32],
    stride: usize,
    left: &[f32],
    right: &[f32],
    (rows, columns, inner): (usize, usize, usize),
    layout: Right,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(stride >= columns && out.len() >= (rows - 1) * stride + columns);
    assert!(left.len() == rows * inner && right.len() == inner * columns);
    let (right_column, right_row) = match layout {
        Right::Plain => (1, columns as isize),
        Right::Transposed => (inner as isize, 1),
    };
    // SAFETY: the strides walk over no more than the extents of the three slices, as asserted; `out` is borrowed exclusively
    // and so overlaps neither factor; every element is an initialised float.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            stride as isize,
            false,
            left.as_ptr(),
            1,
            inner as isize,
            right.as_ptr(),
            right_column,
            right_row,
            0.0f32,
            1.0f32,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_their_definition() {
        for (rows, columns, inner) in [(1, 1, 1), (1, 7, 3), (5, 4, 9), (17, 33, 65), (3, 2, 0)] {
            let stride = columns + 2;
            let left: Vec<f32> = (0..rows * inner).map(|i| (i % 13) as f32 - 6.0).collect();
            let right: Vec<f32> = (0..inner * columns).map(|i| (i % 11) as f32 - 5.0).collect();
            for layout in [Right::Plain, Right::Transposed] {
                let mut out = vec![f32::NAN; rows * stride];
                multiply(&mut out, stride, &left, &right, (rows, columns, inner), layout);
                for r in 0..rows {
                    for c in 0..columns {
                        let at = |k: usize| if layout == Right::Plain { k * columns + c } else { c * inner + k };
                        let expected: f32 = (0..inner).map(|k| left[r * inner + k] * right[at(k)]).sum();
                        assert_eq!(out[r * stride + c], expected);
                    }
                    assert!(out[r * stride + columns..][..2].iter().all(|value| value.is_nan()));
                }
            }
        }
    }
}
