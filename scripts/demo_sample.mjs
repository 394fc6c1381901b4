/** Creates the sample file of the demo. Its values are computed, so every run writes the same bytes. */
import { save, sparseFromDense, tensor } from '../dist/index.js'

const ACTIVATION_SHAPE = [1, 3, 48, 64]
const WEIGHTS_SHAPE = [16, 3, 3, 3]
const SPARSE_SHAPE = [32, 32]
const SEED = 0x7117e

/** Saves an activation like an image, weights, and a sparse tensor; returns the activation's shape. */
export async function saveSample(path) {
  const random = generator(SEED)
  const activation = dense(ACTIVATION_SHAPE, (index) => pixel(index) + 0.05 * random())
  const weights = dense(WEIGHTS_SHAPE, () => random() - 0.5)
  const sparse = await sparseFromDense(dense(SPARSE_SHAPE, () => (random() < 0.05 ? random() : 0)))
  await save(path, [activation, weights, sparse])
  return ACTIVATION_SHAPE
}

function dense(shape, elementAt) {
  const size = shape.reduce((product, extent) => product * extent, 1)
  return tensor(
    Float32Array.from({ length: size }, (_, index) => elementAt(index)),
    { dtype: 'float32', shape },
  )
}

/** Three colour planes: a slope to the right, a slope down, and a disc. */
function pixel(index) {
  const [, , height, width] = ACTIVATION_SHAPE
  const x = (index % width) / width
  const y = (Math.floor(index / width) % height) / height
  const plane = Math.floor(index / (width * height))
  return [x, y, Math.hypot(x - 0.5, y - 0.5) < 0.3 ? 1 : 0][plane]
}

/** Numbers in [0, 1) from a linear congruential generator with the constants of "Numerical Recipes". */
function generator(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
