/** The real tmfiles of the fixtures, ready to run: weights and open shapes are filled in. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { open, save, tensor } from '../../../dist/index.js'
import { fillWeights, setInputShape } from '../../../dist/tmfile.js'
import { generator } from '../../../scripts/seeded.mjs'

/** Shapes of inputs that a file leaves open. */
const INPUT_SHAPES = { retinaface_benchmark: { data: [1, 3, 64, 96] } }

const countOf = (shape) => shape.reduce((product, extent) => product * extent, 1)

/** Paths of the tmfiles in a folder. */
export function realModels(folder, only) {
  const names = existsSync(folder) ? readdirSync(folder).sort() : []
  return names
    .filter((name) => name.endsWith('.tmfile') && (!only || name.startsWith(only)))
    .map((name) => join(folder, name))
}

/** Opens a file with seeded numbers for weights that it does not have. The caller closes it. */
export async function openFilled(path) {
  const file = await open(path)
  const random = generator(1)
  const gauss = () => random() + random() + random() - 1.5
  fillWeights(file.tmfile, ({ dtype, shape }) => {
    const scale = shape.length > 1 ? 1.5 / Math.sqrt(countOf(shape.slice(1))) : 0.1
    const values = Array.from({ length: countOf(shape) }, () => (dtype === 'float32' ? scale * gauss() : 0))
    return tensor(values, { dtype, shape })
  })
  for (const [name, shape] of Object.entries(shapesOf(path))) setInputShape(file.tmfile, name, shape)
  return file
}

export function shapesOf(path) {
  return INPUT_SHAPES[/([^/]+)\.tmfile$/.exec(path)?.[1]] ?? {}
}

/** Writes a seeded .npy for each input of a model. Returns their paths by name, in NCHW. */
export async function makeInputs({ graph }, folder) {
  const random = generator(2)
  const paths = {}
  for (const { outputs } of graph.inputs) {
    const [{ name, dtype, shape: stored }] = outputs
    const [n, h, w, c] = stored
    const shape = graph.graphLayout === 1 && stored.length === 4 ? [n, c, h, w] : stored
    const isCode = dtype === 'uint8' || dtype === 'int8'
    const draw = () => (isCode ? Math.floor(random() * 255) - (dtype === 'int8' ? 127 : 0) : random() - 0.5)
    const values = Array.from({ length: countOf(shape) }, draw)
    paths[name] = join(folder, `in${Object.keys(paths).length}.npy`)
    await save(paths[name], tensor(values, { dtype: isCode ? dtype : 'float32', shape }))
  }
  return paths
}
