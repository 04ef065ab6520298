//! Products of float matrices.

/// A matrix within a slice.
#[derive(Debug, Clone, Copy)]
pub struct Strided<T> {
    /// The elements, from the first of the first row on.
    pub data: T,
    /// Elements from one row to the next.
    pub stride: usize,
}

impl<T: AsRef<[f32]>> Strided<T> {
    /// Whether all of `rows` × `columns` lies within the slice.
    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || self.stride >= columns && self.data.as_ref().len() >= (rows - 1) * self.stride + columns
    }
}

/// How the right factor of a product lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    /// `[inner, columns]`.
    Plain,
    /// `[columns, inner]`.
    Transposed,
}

/// What becomes of the elements that a product is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// They are replaced.
    Nothing,
    /// The product is added to them.
    Sum,
}

/// `out = left × right` or `out += left × right`, on this thread. `left` is `[rows, inner]`, `out` is `[rows, columns]`.
///
/// # Panics
/// Where a slice is too short for its extents.
pub fn multiply(
    onto: Onto,
    out: Strided<&mut [f32]>,
    left: Strided<&[f32]>,
    right: Strided<&[f32]>,
    (rows, columns, inner): (usize, usize, usize),
    layout: Right,
) {
    if rows == 0 || columns == 0 {
        return;
    }
    assert!(out.holds(rows, columns) && left.holds(rows, inner));
    let stride = right.stride as isize;
    let (right_column, right_row) = match layout {
        Right::Plain => {
            assert!(right.holds(inner, columns));
            (1, stride)
        }
        Right::Transposed => {
            assert!(right.holds(columns, inner));
            (stride, 1)
        }
    };
    let add = onto == Onto::Sum;
    // SAFETY: the strides walk over no more than the extents of the three slices, as asserted; `out` is borrowed exclusively
    // and so overlaps neither factor; every element is an initialised float.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.data.as_mut_ptr(),
            1,
            out.stride as isize,
            add,
            left.data.as_ptr(),
            1,
            left.stride as isize,
            right.data.as_ptr(),
            right_column,
            right_row,
            if add { 1.0f32 } else { 0.0 },
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
            let wide: Vec<f32> = (0..rows * (inner + 3)).map(|i| (i % 13) as f32 - 6.0).collect();
            let left = Strided { data: wide.as_slice(), stride: inner + 3 };
            let right: Vec<f32> = (0..(inner + 2) * (columns + 2)).map(|i| (i % 11) as f32 - 5.0).collect();
            for layout in [Right::Plain, Right::Transposed] {
                let mut data = vec![f32::NAN; rows * stride];
                for times in [1.0, 2.0] {
                    let onto = if times == 1.0 { Onto::Nothing } else { Onto::Sum };
                    let out = Strided { data: data.as_mut_slice(), stride };
                    let right_stride = if layout == Right::Plain { columns } else { inner } + 1;
                    let factor = Strided { data: right.as_slice(), stride: right_stride };
                    multiply(onto, out, left, factor, (rows, columns, inner), layout);
                    for r in 0..rows {
                        for c in 0..columns {
                            let at = |k: usize| {
                                if layout == Right::Plain { k * right_stride + c } else { c * right_stride + k }
                            };
                            let expected: f32 = (0..inner).map(|k| wide[r * left.stride + k] * right[at(k)]).sum();
                            assert_eq!(data[r * stride + c], times * expected);
                        }
                        assert!(data[r * stride + columns..][..2].iter().all(|value| value.is_nan()));
                    }
                }
            }
        }
    }
}
