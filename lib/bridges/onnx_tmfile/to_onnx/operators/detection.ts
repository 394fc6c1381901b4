/** Boxes of SSD detectors: those that follow from shapes are constants. */

import { append } from '../../../../long_lists.js'
import { refuse } from '../../to_tmfile/refusal.js'
import { type NodeScope, type OperatorRow, row } from '../node_scope.js'

/** A box of a cell: width and height in pixels, and the sides of the image by which its corners are divided. */
interface Box {
  readonly width: number
  readonly height: number
  readonly imageWidth: number
  readonly imageHeight: number
}

const { fround } = Math

/** The boxes of each cell, in the order of the engine, which takes whole sizes and divides flipped boxes by the other side. */
function boxesOf({ params }: NodeScope<'PriorBox'>, imageWidth: number, imageHeight: number): readonly Box[] {
  const { min_size, max_size, aspect_ratio, flip } = params
  return (min_size ?? []).flatMap((size, at) => {
    const minimum = Math.trunc(size)
    const maximum = max_size?.length ? Math.trunc(max_size[at]!) : undefined
    const square = (width: number): Box => ({ width, height: width, imageWidth, imageHeight })
    const oblong = (aspect_ratio ?? []).flatMap((ratio): readonly Box[] => {
      const [width, height] = [fround(minimum * Math.sqrt(ratio)), fround(minimum / Math.sqrt(ratio))]
      const upright = { width, height, imageWidth, imageHeight }
      const flipped = { width: height, height: width, imageWidth: imageHeight, imageHeight: imageWidth }
      return flip === 0 ? [upright] : [upright, flipped]
    })
    const larger = maximum === undefined ? [] : [square(fround(Math.sqrt(minimum * maximum)))]
    return [square(minimum), ...larger, ...oblong]
  })
}

/** A detector of 300 × 300 pixels has 8,732; a damaged extent would ask for more than memory holds. */
const MOST_BOXES = 2 ** 18

function priorBox(s: NodeScope<'PriorBox'>) {
  const { params } = s
  const [map, image] = [s.shape(0), s.shape(1)]
  const [rows, columns] = [map[2]!, map[3]!]
  const isGiven = params.img_h !== 0 && params.img_w !== 0
  const [imageHeight, imageWidth] = isGiven ? [params.img_h, params.img_w] : [image[2]!, image[3]!]
  const isStepped = params.step_h !== 0 && params.step_w !== 0
  const stepHeight = isStepped ? params.step_h : fround(imageHeight / rows)
  const stepWidth = isStepped ? params.step_w : fround(imageWidth / columns)
  const boxes = boxesOf(s, imageWidth, imageHeight)
  const count = map[0]! * rows * columns * boxes.length
  if (count > MOST_BOXES) refuse(`${count} boxes; at most ${MOST_BOXES} are stored as a constant`)
  const corners: number[] = []
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const x = fround(fround(column + params.offset) * stepWidth)
      const y = fround(fround(row + params.offset) * stepHeight)
      for (const box of boxes) append(corners, cornersOf(box, x, y))
    }
  }
  const clipped = params.clip === 0 ? corners : corners.map((each) => Math.min(Math.max(each, 0), 1))
  const variance = params.variance?.length === 4 ? params.variance : refuse('it has no four variances')
  const variances = Array.from(clipped, (_, at) => variance[at % 4]!)
  const [batch] = map
  const values = Array.from({ length: batch! }, () => [...clipped, ...variances]).flat()
  s.finish('Identity', [s.numbers(values, 'float32', s.outputShapes[0]!)])
}

/** Divided by the size of the image. */
function cornersOf({ width, height, imageWidth, imageHeight }: Box, x: number, y: number): readonly number[] {
  return [
    fround(fround(x - width / 2) / imageWidth),
    fround(fround(y - height / 2) / imageHeight),
    fround(fround(x + width / 2) / imageWidth),
    fround(fround(y + height / 2) / imageHeight),
  ]
}

export const DETECTION_ROWS: readonly OperatorRow[] = [
  row('PriorBox', 'a constant', priorBox, 'computed from the shapes, the same for each image'),
]
