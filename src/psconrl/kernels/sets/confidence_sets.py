r"""Sets of distributions, and the largest mean of a function h of the states that each allows.

Bounds of rows are given as in CSR form: the ``low`` and ``high`` of every observed successor, and for each pair the
largest probability of any other successor, ``unseen``.

Bounds of noise are given by context, ``low`` and ``high`` (G, V): of all values of the first noise, then of the second,
and so on; ``sizes`` (K,) says how many values each has. The joint outcomes are numbered with the last noise running
fastest. In outcome w a pair moves to ``successors[pair, w]`` and pays ``paid[pair, w]``. The largest mean is taken
over the noises one after the other, the last one first:

.. math:: \max_{q_1} \sum_{w_1} q_1(w_1) \cdots \max_{q_K} \sum_{w_K} q_K(w_K)\, (c(w) + h(f(w))),

so that each distribution may depend on the outcomes before it; if none does, the mean is no larger.

A pair of class k >= 0 has bounds ``least`` and ``most`` (C, W) on the probabilities of whole blocks of outcomes, too.
``blocks[k, w]`` is the first outcome of the block of w, under which the bounds are stored, and -1 if w is impossible.
Every outcome of a block counts as its most expensive one. The smaller of the two largest means is returned.

The distributions that attain a largest mean are found with it: ``shares`` holds those of the noise, or the blocks, that
was looked at last, and ``worst`` the most expensive outcome of every block.
"""

import cython
from cython.cimports.psconrl.kernels.arithmetic.sorting import argsort_into

_INFINITE = cython.declare(cython.double, float("inf"))
_FEW = cython.declare(cython.Py_ssize_t, 16)  # numbers that are sorted by insertion


@cython.cclass
class Sets:
    """The largest means of a function h of the states that a set of models allows. Subclasses say which set."""

    def prepare(self, h):
        """Do what is needed once for every h."""

    def mean(self, pair, h):
        """Return the largest mean of a pair."""
        return 0.0


@cython.cclass
class RowSets(Sets):
    """Every row on its own, within its bounds.

    ``order``: the states by decreasing h. ``place`` (S,) is -1 everywhere except during a call.
    """

    def prepare(self, h):
        """Order the states by decreasing h, ties by index."""
        for s in range(h.shape[0]):
            self.negative[s] = -h[s]
        argsort_into(self.negative, self.order, self.scratch)

    def mean(self, pair, h):
        """Return the largest p.h of a pair: lowest probabilities, then up to the highest where h is largest."""
        if self.unseen[pair] <= 0.0:
            return self._of_stored(pair, h)
        left: cython.double = 1.0
        value: cython.double = 0.0
        for entry in range(self.indptr[pair], self.indptr[pair + 1]):
            self.place[self.successors[entry]] = entry
            left -= self.low[entry]
            value += self.low[entry] * h[self.successors[entry]]
        for k in range(self.order.shape[0]):
            if left <= 0.0:
                break
            at: cython.Py_ssize_t = self.order[k]
            seen: cython.Py_ssize_t = self.place[at]
            room: cython.double = self.high[seen] - self.low[seen] if seen >= 0 else self.unseen[pair]
            step: cython.double = min(room, left)
            value += step * h[at]
            left -= step
        for entry in range(self.indptr[pair], self.indptr[pair + 1]):
            self.place[self.successors[entry]] = -1
        return value + max(left, 0.0) * h[self.order[0]]

    def _of_stored(self, pair, h):
        """Return the same for a pair that leads to no other states than those stored, of which there are few."""
        first: cython.Py_ssize_t = self.indptr[pair]
        number: cython.Py_ssize_t = self.indptr[pair + 1] - first
        left: cython.double = 1.0
        value: cython.double = 0.0
        for i in range(number):  # sorted by decreasing h
            here: cython.double = h[self.successors[first + i]]
            j: cython.Py_ssize_t = i
            while j > 0 and h[self.successors[self.scratch[j - 1]]] < here:
                self.scratch[j] = self.scratch[j - 1]
                j -= 1
            self.scratch[j] = first + i
            left -= self.low[first + i]
            value += self.low[first + i] * here
        for k in range(number):
            if left <= 0.0:
                break
            entry: cython.Py_ssize_t = self.scratch[k]
            step: cython.double = min(self.high[entry] - self.low[entry], left)
            value += step * h[self.successors[entry]]
            left -= step
        return value + max(left, 0.0) * (h[self.successors[self.scratch[0]]] if number else 0.0)


@cython.cclass
class NoiseSets(Sets):
    """The distributions of all noises, each within its bounds."""

    def mean(self, pair, h):
        """Return the largest mean of what is paid plus h, over the noises one after the other."""
        context: cython.Py_ssize_t = self.contexts[pair]
        left: cython.Py_ssize_t = self.successors.shape[1]
        for w in range(left):
            self.values[w] = self.paid[pair, w] + h[self.successors[pair, w]]
        first: cython.Py_ssize_t = self.low.shape[1]
        for back in range(self.sizes.shape[0]):
            size: cython.Py_ssize_t = self.sizes[self.sizes.shape[0] - 1 - back]
            first -= size
            left //= size
            for group in range(left):  # in place: a group is read before its number is written
                self.values[group] = self._of_noise(context, first, size, group * size)
        if self.classes[pair] < 0:
            return self.values[0]
        largest: cython.double = self.values[0]
        return min(largest, self._of_blocks(pair, self.classes[pair], h))

    def distribution(self, pair, h, out):
        """Compute probabilities of the joint outcomes (W,) that attain the largest mean of a pair."""
        context: cython.Py_ssize_t = self.contexts[pair]
        W: cython.Py_ssize_t = self.successors.shape[1]
        for w in range(W):
            self.values[w] = self.paid[pair, w] + h[self.successors[pair, w]]
            out[w] = 1.0
        first: cython.Py_ssize_t = self.low.shape[1]
        left: cython.Py_ssize_t = W
        below: cython.Py_ssize_t = 1  # number of joint outcomes of the noises after this one
        for back in range(self.sizes.shape[0]):
            size: cython.Py_ssize_t = self.sizes[self.sizes.shape[0] - 1 - back]
            first -= size
            left //= size
            for group in range(left):
                self.values[group] = self._of_noise(context, first, size, group * size)
                for v in range(size):
                    for w in range((group * size + v) * below, (group * size + v + 1) * below):
                        out[w] *= self.shares[v]
            below *= size
        kind: cython.Py_ssize_t = self.classes[pair]
        if kind < 0:
            return
        largest: cython.double = self.values[0]
        if self._of_blocks(pair, kind, h) < largest:
            for w in range(W):
                out[w] = 0.0
            for w in range(W):
                if self.blocks[kind, w] == w:
                    out[self.worst[w]] = self.shares[w]

    def _of_blocks(self, pair, kind, h):
        """Return the largest mean of what is paid plus h, over the probabilities of the blocks of a class."""
        W: cython.Py_ssize_t = self.successors.shape[1]
        for w in range(W):
            self.negative[w] = _INFINITE
        for w in range(W):
            first: cython.Py_ssize_t = self.blocks[kind, w]
            if first >= 0:
                negative: cython.double = -self.paid[pair, w] - h[self.successors[pair, w]]
                if negative < self.negative[first]:
                    self.negative[first], self.worst[first] = negative, w
        left: cython.double = 1.0
        value: cython.double = 0.0
        n: cython.Py_ssize_t = 0
        for w in range(W):
            if self.blocks[kind, w] == w:
                left -= self.least[kind, w]
                value -= self.least[kind, w] * self.negative[w]
                self.shares[w] = self.least[kind, w]
                if n < _FEW:
                    self._insert(n, w)
                n += 1
        if n > _FEW:  # impossible outcomes come last
            self._sort(W)
        for k in range(n):
            at: cython.Py_ssize_t = self.order[k]
            if left <= 0.0:
                break
            step: cython.double = min(self.most[kind, at] - self.least[kind, at], left)
            value -= step * self.negative[at]
            left -= step
            self.shares[at] += step
        self.shares[self.order[0]] += max(left, 0.0)
        return value - max(left, 0.0) * self.negative[self.order[0]]

    def _of_noise(self, context, first, size, begin):
        """Return the largest mean of ``size`` values from ``begin`` on, with the bounds from ``first`` on."""
        if size == 2:  # most noise: an event that happens or not
            return self._of_two(context, first, begin)
        left: cython.double = 1.0
        value: cython.double = 0.0
        for v in range(size):  # an impossible outcome has no value
            low: cython.double = self.low[context, first + v]
            left -= low
            self.shares[v] = low
            value += low * self.values[begin + v] if low > 0.0 else 0.0
            self.negative[v] = -self.values[begin + v] if self.high[context, first + v] > 0.0 else _INFINITE
        if left <= 0.0:
            return value
        self._sort(size)
        for k in range(size):
            at: cython.Py_ssize_t = self.order[k]
            step: cython.double = min(self.high[context, first + at] - self.low[context, first + at], left)
            if step > 0.0:
                value += step * self.values[begin + at]
                left -= step
                self.shares[at] += step
        self.shares[self.order[0]] += max(left, 0.0)
        return value + max(left, 0.0) * self.values[begin + self.order[0]]

    def _of_two(self, context, first, begin):
        """Return the largest mean of two values, as ``_of_noise`` does."""
        one: cython.double = self.values[begin]
        other: cython.double = self.values[begin + 1]
        low: cython.double = self.low[context, first]
        other_low: cython.double = self.low[context, first + 1]
        high: cython.double = self.high[context, first]
        other_high: cython.double = self.high[context, first + 1]
        share: cython.double = low
        other_share: cython.double = other_low
        left: cython.double = 1.0 - low - other_low
        if left > 0.0:
            if other_high > 0.0 and (other > one or high <= 0.0):
                other_share += min(max(other_high - other_low, 0.0), left)
                left = 1.0 - low - other_share
                step: cython.double = min(max(high - low, 0.0), max(left, 0.0))
                share += step
                other_share += max(left - step, 0.0)
            else:
                share += min(max(high - low, 0.0), left)
                left = 1.0 - share - other_low
                step = min(max(other_high - other_low, 0.0), max(left, 0.0))
                other_share += step
                share += max(left - step, 0.0)
        self.shares[0], self.shares[1] = share, other_share
        return (share * one if share > 0.0 else 0.0) + (other_share * other if other_share > 0.0 else 0.0)

    def _sort(self, n):
        """Order the first ``n`` numbers in ``negative``, ties by index."""
        if n > _FEW:
            self._sort_many(n)
            return
        for k in range(n):
            self._insert(k, k)

    def _insert(self, n, at):
        """Insert an index into the order of ``n`` others, after those with the same number."""
        place: cython.Py_ssize_t = n
        while place > 0 and self.negative[self.order[place - 1]] > self.negative[at]:
            self.order[place] = self.order[place - 1]
            place -= 1
        self.order[place] = at

    def _sort_many(self, n):
        """Do the same by merging; the slices would slow down ``_sort``."""
        argsort_into(self.negative[:n], self.order[:n], self.scratch[:n])
