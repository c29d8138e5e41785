"""Platform-independent products: correct, and refused where shapes disagree."""

from itertools import product as pairs

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from psconrl.model.matrix_product import product

RNG = np.random.default_rng(5)
VECTOR, MATRIX = RNG.normal(size=7), RNG.normal(size=(7, 4))
SPARSE = csr_array(random_array((7, 7), density=0.4, rng=RNG))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (VECTOR, VECTOR),
        (VECTOR, MATRIX),
        (MATRIX.T, VECTOR),  # not contiguous
        (MATRIX.T, MATRIX),
        (SPARSE, VECTOR),
        (SPARSE, MATRIX),
        (VECTOR, SPARSE),
        (SPARSE.astype(np.float64), VECTOR > 0),
    ],
)
def test_a_product_is_the_product(left, right):
    """Equal to NumPy's and SciPy's up to rounding."""
    np.testing.assert_allclose(product(left, right), left @ right, rtol=0, atol=1e-14)


def test_other_sparse_forms_are_refused():
    with pytest.raises(TypeError, match="CSR form; got CSC"):
        product(SPARSE.tocsc(), VECTOR)


def test_long_indices_are_taken():
    wide = csr_array((SPARSE.data, SPARSE.indices.astype(np.int64), SPARSE.indptr.astype(np.int64)), shape=(7, 7))
    np.testing.assert_array_equal(product(wide, VECTOR), product(SPARSE, VECTOR))


@pytest.mark.parametrize(
    ("left", "right"), list(pairs((np.ones(3), np.ones((2, 3)), SPARSE), (np.ones(4), np.ones((4, 2)))))
)
def test_sizes_that_disagree_are_refused(left, right):
    with pytest.raises(ValueError, match=r"a matrix|two matrices|vectors|a weight"):
        product(left, right)
