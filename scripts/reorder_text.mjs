/**
 * Encodes a reorder as numbers separated by spaces, the input of test/native/read_description.h.
 *
 * @param {number} bits - width of an element
 * @param {import('../dist/index.js').LayoutStorage} from - bound to the shape of `to`, or of the tensor that `slice` selects from
 * @param {import('../dist/index.js').LayoutStorage} to
 * @param {{ start: readonly number[], step: readonly number[] }} [slice]
 */
export function reorderText(bits, from, to, slice) {
  const sliced = slice ? [1, ...from.extents, ...slice.start, ...slice.step] : [0]
  const sides = [...sideNumbers(from.side), ...sideNumbers(to.side)]
  return [bits, to.extents.length, ...to.extents, ...sides, ...sliced].join(' ')
}

function sideNumbers({ lower, upper, elements, pieces }) {
  return [...lower, ...upper, elements, pieces.length, ...pieces.flatMap(pieceNumbers)]
}

function pieceNumbers({ axis, lo, hi, digits }) {
  const digitNumbers = digits.flatMap(({ axes, radix, weight }) => [axes.length, ...axes, radix, weight])
  return [axis, lo, hi, digits.length, ...digitNumbers]
}
