/**
 * A reorder as numbers with blanks between them, in the form that test/native/read_description.h reads.
 *
 * @param {number} bits - of an element
 * @param {import('../dist/index.js').LayoutStorage} from - bound to the shape of `to`
 * @param {import('../dist/index.js').LayoutStorage} to
 */
export function reorderText(bits, from, to) {
  return [bits, to.extents.length, ...to.extents, ...sideNumbers(from.side), ...sideNumbers(to.side)].join(
    ' ',
  )
}

function sideNumbers({ lower, upper, elements, pieces }) {
  return [...lower, ...upper, elements, pieces.length, ...pieces.flatMap(pieceNumbers)]
}

function pieceNumbers({ axis, lo, hi, digits }) {
  const digitNumbers = digits.flatMap(({ axes, radix, weight }) => [axes.length, ...axes, radix, weight])
  return [axis, lo, hi, digits.length, ...digitNumbers]
}
